#ifndef LOCKSTEP_SERVER_STEP_GATE_H_
#define LOCKSTEP_SERVER_STEP_GATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::server {

// Gate decides which passes count for a step and which workers may begin the
// next one. Only ps task 0 has a gate. StrictGate and CompatibleGate implement
// it for their modes, and SharedGate for strict mode with shared work.
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
    // With kToken: that of the next pass. With kFinished, strict mode: the one
    // that training has reached, 0 if this gate never began.
    int64_t step = 0;
    int slot = 0;   // of kToken
    int block = 1;  // of kToken, as in PassId
    // With kRedo: the current attempt. Otherwise, strict mode: the attempt that
    // produced `step`; 0 if this gate has not seen it.
    int64_t attempt = 0;
    // With kToken, strict mode: the attempt of `step` whose set already
    // contains the worker; 0: the worker must announce its pass.
    int64_t selected_attempt = 0;
    // Strict mode: this gate has committed the step of the pass without that
    // pass.
    bool not_needed = false;
  };

  // The results of Expire() and Replace(), with the answers that became ready.
  struct Expired : ExpiredWorker {
    std::vector<Answer> answers;
  };
  struct Replaced : ReplacedMember {
    std::vector<Answer> answers;
  };

  // A worker that waits, for reports.
  struct Waiting {
    int worker = 0;
    absl::Time since;
  };

  virtual ~Gate() = default;

  // Begins at `global_step`. Repeating it changes nothing.
  virtual std::vector<Answer> Activate(int64_t global_step) = 0;

  // Announces that the gradient of a pass is ready, or about to be. A repeated
  // announcement returns the current decision; one of a pass that the worker
  // has ended returns kTooLate.
  //
  //   kInvalidArgument     worker or slot out of range
  //   kFailedPrecondition  the worker takes no part any more; the gate is not
  //                        active; a newer incarnation of the worker is known;
  //                        an older one has not been expired yet; or, in
  //                        strict mode, the pass is of a later step than the
  //                        gate's, so the worker has seen commits that this
  //                        server has lost
  virtual absl::StatusOr<Announced> Announce(const Pass& pass) = 0;

  // Restarts the step at hand as `attempt`, because servers have lost gradients
  // of it; members must push again. No effect if the attempt is not newer. A
  // gate that was created in the middle of the step treats every worker that
  // waits after a pass of the step as announced.
  virtual std::vector<Answer> Redo(int64_t attempt) = 0;

  // Sets the number of gradients of a step, A, and the workers that take part,
  // ascending; an empty list means all workers of the job. In strict mode the
  // caller must call Redo() afterwards, and waits of workers that take no part
  // any more are answered kCancelled.
  virtual std::vector<Answer> SetReplicas(int replicas_to_aggregate,
                                          const std::vector<int>& workers) = 0;

  // Files a wait for the token of the pass after `pass`, which was pushed for
  // `attempt` (0: not pushed). Returns the waits that are answered by this
  // call, perhaps including its own. If a worker has two waits, the one for the
  // older pass is answered kCancelled, whichever came first.
  //
  //   kInvalidArgument     worker or slot out of range
  //   kFailedPrecondition  the worker or its incarnation, as Announce
  virtual absl::StatusOr<std::vector<Answer>> Wait(uint64_t ticket,
                                                   const Pass& pass,
                                                   int64_t attempt,
                                                   absl::Time now) = 0;

  // Strict mode: files a wait for the end of the step of `pass`, while the
  // worker still computes the pass. The answer is kToken once the step is
  // committed, which gives the worker no token; kFinished; or kCancelled if the
  // worker begins another pass or waits again. The worker may announce and push
  // the pass meanwhile.
  //
  //   kInvalidArgument     worker or slot out of range, or compatible mode
  //   kFailedPrecondition  the worker or its incarnation, as Announce
  virtual absl::StatusOr<std::vector<Answer>> Watch(uint64_t ticket,
                                                    const Pass& pass,
                                                    absl::Time now) = 0;

  // Withdraws a wait. No effect once it has been answered.
  virtual void Cancel(uint64_t ticket) = 0;

  // Compatible mode: records that all gradients of a pass have arrived, on all
  // servers. From then on the token of the pass is used: it does not return to
  // the queue, even if the worker dies before it takes the next one.
  virtual void FinishPass(const Pass& /*pass*/) {}

  // Removes the announcements, tokens and waits of incarnations of `worker` up
  // to `incarnation`.
  virtual Expired Expire(int worker, uint64_t incarnation) = 0;

  // Strict mode: replaces `worker` in the set of the step after `step` by the
  // first worker that has announced, was not needed and waits with its
  // gradient. Moves the replaced announcement behind all others. No effect if
  // there is no such worker, or if `attempt` is not the one at hand.
  virtual Replaced Replace(int worker, int64_t step, int64_t attempt) = 0;

  // Ends the step at hand: `step` becomes the global step, and tokens of the
  // next one are given out. Committing the global step again changes nothing.
  //
  // The caller must have found the step prepared on this server.
  //
  //   kFailedPrecondition  `attempt` is not the one at hand, its set is not
  //                        full, or `step` is not the next one
  virtual absl::StatusOr<std::vector<Answer>> Commit(int64_t step,
                                                     int64_t attempt) = 0;

  // Ends training: all waits, present and future, are answered kFinished.
  virtual std::vector<Answer> Finish() = 0;
  // Undoes Finish(): a chief that takes the job over makes further steps. Waits
  // that were answered kFinished stay answered.
  virtual void Reopen() = 0;

  virtual int64_t global_step() const = 0;

  // Returns the newest incarnation of the worker that has called; 0: none has.
  virtual uint64_t NewestIncarnation(int worker) const = 0;

  // Workers of the step's set so far, ascending, each once per share; empty in
  // compatible mode and if work is shared, where a step has no set of workers.
  virtual std::vector<int> Members() const = 0;
  virtual std::vector<Waiting> WaitingWorkers() const = 0;

  // True if the gradient of a pass may count in the step after its local step.
  // False in strict mode if that step is the current one and its set does not
  // contain the worker, or, if work is shared, if the pass was not announced.
  virtual bool Counts(const Pass& /*pass*/) const { return true; }
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_GATE_H_
