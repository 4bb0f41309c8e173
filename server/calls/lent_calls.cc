#include "server/calls/lent_calls.h"

#include <algorithm>
#include <utility>

namespace lockstep::server {

std::shared_ptr<const void> LentCalls::Add(int first_part, int num_parts,
                                           absl::Time now, BreakOff break_off) {
  uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    id = ++last_id_;
    calls_.emplace(
        id, Call{first_part, static_cast<int64_t>(first_part) + num_parts, now,
                 std::move(break_off)});
  }
  return {static_cast<const void*>(this),
          [self = shared_from_this(), id](const void*) { self->Remove(id); }};
}

bool LentCalls::Call::Lends(absl::Span<const int> parts) const {
  return std::any_of(parts.begin(), parts.end(), [this](int part) {
    return part >= first_part && part < end_part;
  });
}

int LentCalls::TakeBack(absl::Span<const int> parts, absl::Time time) {
  std::vector<BreakOff> late;
  {
    MutexLock lock(mutex_);
    for (auto call = calls_.begin(); call != calls_.end();) {
      if (call->second.since >= time || !call->second.Lends(parts)) {
        ++call;
        continue;
      }
      late.push_back(std::move(call->second.break_off));
      call = calls_.erase(call);
    }
  }
  // With no lock held: the end of a call may release its answer, and so call
  // Remove().
  for (const BreakOff& break_off : late) break_off();
  return static_cast<int>(late.size());
}

int LentCalls::TakeBackAll() {
  std::map<uint64_t, Call> all;
  {
    MutexLock lock(mutex_);
    all.swap(calls_);
  }
  // With no lock held, as above.
  for (const auto& [id, call] : all) call.break_off();
  return static_cast<int>(all.size());
}

void LentCalls::Remove(uint64_t id) {
  BreakOff gone;  // destroyed with no lock held
  MutexLock lock(mutex_);
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;
  gone = std::move(call->second.break_off);
  calls_.erase(call);
}

}  // namespace lockstep::server
