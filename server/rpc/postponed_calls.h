#ifndef LOCKSTEP_SERVER_RPC_POSTPONED_CALLS_H_
#define LOCKSTEP_SERVER_RPC_POSTPONED_CALLS_H_

#include <cstdint>
#include <functional>
#include <list>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "server/step/engine.h"

namespace lockstep::server {

// PostponedCalls holds pulls and pushes that name a step which is prepared on
// this server, and which ps task 0 has committed if the worker says the truth.
// A worker's word commits nothing, so they wait for the chief's. Usually it is
// under way, and arrives within microseconds.
//
// Threads: safe to share. Calls go on with no lock held.
class PostponedCalls {
 public:
  // Must serve the call anew if the status is OK, and else end it with that.
  using GoOn = std::function<void(const absl::Status&)>;

  // Keeps a call for as long as Engine::AwaitsCommit(step). False if that does
  // not wait; `go_on` is then not called.
  bool Add(Engine& engine, int64_t step, absl::Time now, GoOn go_on)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets the calls go on whose steps do not wait any more. Must be called after
  // each of the chief's orders.
  void Resume(Engine& engine) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the calls that have waited since before `time`, with kUnavailable.
  void EndOld(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call {
    int64_t step = 0;
    absl::Time since;
    GoOn go_on;
  };

  // Takes out the calls for which `due`.
  std::list<Call> TakeOut(absl::FunctionRef<bool(const Call&)> due)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::list<Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_POSTPONED_CALLS_H_
