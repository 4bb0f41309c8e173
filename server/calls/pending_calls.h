#ifndef LOCKSTEP_SERVER_CALLS_PENDING_CALLS_H_
#define LOCKSTEP_SERVER_CALLS_PENDING_CALLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep::server {

// PendingCalls holds the waiting calls of one RPC, each with the data to end
// it. No thread waits: each call has a ticket, and the thread that takes the
// ticket must end the call, once.
//
// Threads: safe to share.
template <typename Call>
class PendingCalls {
 public:
  uint64_t Add(Call call, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    calls_.emplace(++last_ticket_, Entry{std::move(call), now});
    return last_ticket_;
  }

  // Returns the call, unless its ticket was taken before.
  std::optional<Call> Take(uint64_t ticket) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    auto found = calls_.find(ticket);
    if (found == calls_.end()) return std::nullopt;
    Call call = std::move(found->second.call);
    calls_.erase(found);
    return call;
  }

  // The tickets of calls that have waited since before `time`.
  std::vector<uint64_t> OlderThan(absl::Time time) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    std::vector<uint64_t> tickets;
    for (const auto& [ticket, entry] : calls_) {
      if (entry.since < time) tickets.push_back(ticket);
    }
    return tickets;
  }

 private:
  struct Entry {
    Call call;
    absl::Time since;
  };

  mutable Mutex mutex_;
  uint64_t last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Entry> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_PENDING_CALLS_H_
