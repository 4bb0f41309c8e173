#include "server/step/postponed_calls.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::server {

// The engine is asked with the lock held, here and in Resume(): a commit comes
// either before this call, or its Resume() finds the call.
bool PostponedCalls::Add(Engine& engine, int64_t step, absl::Time now,
                         GoOn go_on) {
  MutexLock lock(mutex_);
  if (!engine.AwaitsCommit(step)) return false;
  calls_.push_back({step, now, std::move(go_on)});
  return true;
}

void PostponedCalls::Resume(Engine& engine) {
  for (const Call& call : TakeOut([&engine](const Call& waiting) {
         return !engine.AwaitsCommit(waiting.step);
       })) {
    call.go_on(absl::OkStatus());
  }
}

void PostponedCalls::EndOld(absl::Time time) {
  for (const Call& call :
       TakeOut([time](const Call& waiting) { return waiting.since < time; })) {
    call.go_on(absl::UnavailableError(
        absl::StrCat("step ", call.step, " is prepared here, and the chief ",
                     "has not said yet that it is committed; retry")));
  }
}

void PostponedCalls::EndAll(const absl::Status& why) {
  for (const Call& call : TakeOut([](const Call&) { return true; })) {
    call.go_on(why);
  }
}

std::list<PostponedCalls::Call> PostponedCalls::TakeOut(
    absl::FunctionRef<bool(const Call&)> due) {
  std::list<Call> taken;
  MutexLock lock(mutex_);
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto next = std::next(call);
    if (due(*call)) taken.splice(taken.end(), calls_, call);
    call = next;
  }
  return taken;
}

}  // namespace lockstep::server
