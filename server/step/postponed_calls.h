#ifndef LOCKSTEP_SERVER_STEP_POSTPONED_CALLS_H_
#define LOCKSTEP_SERVER_STEP_POSTPONED_CALLS_H_

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
// this server and which, according to the worker, ps task 0 has committed. A
// worker's call must not commit a step, so these calls wait for the chief's
// commit, which is usually under way and arrives within microseconds.
//
// Threads: safe to share. Calls continue with no lock held.
class PostponedCalls {
 public:
  // Called with kOk: must serve the call again. Called with an error: must end
  // the call with it.
  using GoOn = std::function<void(const absl::Status&)>;

  // Keeps a call while Engine::AwaitsCommit(step). Returns false, and does not
  // call `go_on`, if that is false already.
  bool Add(Engine& engine, int64_t step, absl::Time now, GoOn go_on)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Continues the calls whose steps no longer wait. Must be called after each
  // order of the chief.
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

  // Removes and returns the calls for which `due` is true.
  std::list<Call> TakeOut(absl::FunctionRef<bool(const Call&)> due)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::list<Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_POSTPONED_CALLS_H_
