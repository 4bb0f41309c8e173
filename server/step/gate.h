#ifndef LOCKSTEP_SERVER_STEP_STEP_GATE_H_
#define LOCKSTEP_SERVER_STEP_STEP_GATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep {

// Gate says which passes count for a step and who may begin the next one.
// It lives on ps task 0; there is one implementation for each mode.
//
// Threads: safe to share; no call waits. A wait is filed under the caller's
//          ticket, and the call that ends it returns its answer.
// Errors:  a call that fails has changed nothing.
class Gate {
 public:
  using Decision = lockstep::Decision;
  struct Announced {
    Decision decision = Decision::kTooLate;
    int64_t attempt = 0;  // of kSelected
    int64_t global_step = 0;
  };

  enum class Outcome { kToken, kRedo, kFinished, kCancelled };
  // The answer to the wait that was filed under `ticket`.
  struct Answer {
    uint64_t ticket = 0;
    Outcome outcome = Outcome::kToken;
    int64_t step = 0;  // of kToken
    int slot = 0;      // of kToken
    // Of kRedo: the attempt at hand. Of kToken, strict mode: the attempt that
    // `step` came of, 0 where this gate has not seen it.
    int64_t attempt = 0;
    // Of kToken, strict mode: the worker is in the set of `step` already.
    int64_t selected_attempt = 0;
    // Strict mode: the step of the pass went on without it, as far as this gate
    // has seen that step.
    bool not_needed = false;
  };

  // What Expire() and Replace() did, and what became ready.
  struct Expired : ExpiredWorker {
    std::vector<Answer> answers;
  };
  struct Replaced : ReplacedMember {
    std::vector<Answer> answers;
  };

  // Somebody who waits, for reports.
  struct Waiting {
    int worker = 0;
    absl::Time since;
  };

  virtual ~Gate() = default;

  // Begins at `global_step`. Repeating it changes nothing.
  virtual std::vector<Answer> Activate(int64_t global_step) = 0;

  // Says that the gradient of a pass is ready, or about to be. Repeating it is
  // answered with how the pass stands now; a pass that the worker has ended is
  // too late.
  //
  //   kInvalidArgument     worker or slot out of range
  //   kFailedPrecondition  not active, a newer incarnation of the worker is
  //                        known, or an older one has not been expired yet;
  //                        strict mode: a step to come, since the worker knows
  //                        of commits that are lost
  virtual absl::StatusOr<Announced> Announce(const Pass& pass) = 0;

  // Begins the step at hand anew, as `attempt`, unless that is no newer one:
  // what servers had collected is lost. Members are told to push again. A gate
  // that has come up in the midst of the step takes everybody for announced
  // who waits after a pass of it.
  virtual std::vector<Answer> Redo(int64_t attempt) = 0;

  // A step takes this many gradients from now on, of these workers, ascending;
  // none: of all of the job. Strict mode: Redo() has to follow.
  virtual std::vector<Answer> SetReplicas(int replicas_to_aggregate,
                                          const std::vector<int>& workers) = 0;

  // Files a wait for the pass after `pass`, which was pushed for `attempt` (0:
  // not pushed). Returns what became ready, perhaps this very wait. An older
  // wait of the same worker is answered kCancelled, whichever came first.
  //
  //   kInvalidArgument     worker or slot out of range
  //   kFailedPrecondition  the worker's incarnation, as Announce
  virtual absl::StatusOr<std::vector<Answer>> Wait(uint64_t ticket,
                                                   const Pass& pass,
                                                   int64_t attempt,
                                                   absl::Time now) = 0;

  // Files a wait for the end of the step of `pass`, strict mode, while the
  // worker computes the pass. The answer is kToken, which is no token, when the
  // step has been committed, or kFinished; kCancelled when the worker has gone
  // further or waits anew. The pass may be announced and pushed meanwhile.
  //
  //   kInvalidArgument     worker or slot out of range, or compatible mode
  //   kFailedPrecondition  the worker's incarnation, as Announce
  virtual absl::StatusOr<std::vector<Answer>> Watch(uint64_t ticket,
                                                    const Pass& pass,
                                                    absl::Time now) = 0;

  // Withdraws a wait, if it has not been answered.
  virtual void Cancel(uint64_t ticket) = 0;

  // Takes out what incarnations of `worker` up to `incarnation` hold.
  virtual Expired Expire(int worker, uint64_t incarnation) = 0;

  // Strict mode: takes `worker` out of the set of the step after `step`, for
  // the first that has announced, was not needed and waits with its gradient,
  // if there is one. It goes behind all that have announced. Does nothing where
  // `attempt` is not the one at hand.
  virtual Replaced Replace(int worker, int64_t step, int64_t attempt) = 0;

  // Ends the step at hand: `step` becomes the global step, and tokens are out.
  //
  //   kFailedPrecondition  `attempt` is not the one at hand, its set is not
  //                        full, or `step` is not the next one. Committing the
  //                        global step again is fine.
  virtual absl::StatusOr<std::vector<Answer>> Commit(int64_t step,
                                                     int64_t attempt) = 0;

  // Ends all steps: every wait, now and later, is answered kFinished.
  virtual std::vector<Answer> Finish() = 0;

  virtual int64_t global_step() const = 0;

  // Of the worker, as far as this gate has heard of it; 0: not at all.
  virtual uint64_t NewestIncarnation(int worker) const = 0;

  // Workers of the set so far, ascending, a worker once per share; empty where
  // sets are not chosen by announcement.
  virtual std::vector<int> Members() const = 0;
  virtual std::vector<Waiting> WaitingWorkers() const = 0;

  // Whether a gradient of the worker may count in the step after `step`: false
  // where sets are chosen by announcement, that step is at hand, and the worker
  // is not in its set.
  virtual bool Counts(int /*worker*/, int64_t /*step*/) const { return true; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_STEP_STEP_GATE_H_
