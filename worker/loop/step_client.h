#ifndef LOCKSTEP_WORKER_LOOP_STEP_CLIENT_H_
#define LOCKSTEP_WORKER_LOOP_STEP_CLIENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::worker {

// The outcomes of a push, counted by part.
struct PushCounts {
  int64_t accepted = 0;
  int64_t stale = 0;
  int64_t duplicate = 0;
  int64_t superseded = 0;
};

// The answer to an announcement.
struct Announcement {
  using Decision = lockstep::Decision;
  Decision decision = Decision::kTooLate;
  int64_t attempt = 0;  // of kSelected
};

// Permission for the next pass, or another answer to the wait for it.
struct Token {
  enum class Kind { kToken, kRedo, kFinished };
  Kind kind = Kind::kToken;
  // kToken: that of the next pass. kFinished, strict mode: the one that
  // training has reached, 0 if it is not known.
  int64_t step = 0;
  int slot = 0;  // of kToken
  // kRedo: the attempt to push for. Otherwise: the attempt that committed the
  // step before `step`; 0 if no push led to it.
  int64_t attempt = 0;
  // kToken: the attempt for which this worker is a member without announcing;
  // 0: it must announce.
  int64_t selected_attempt = 0;
  // True if the step of the pass before was committed without its gradient,
  // even if a push of it was accepted.
  bool not_needed = false;
  int block = 1;  // of kToken, as in PassId
};

// StepClient is the training loop's interface to the servers. Unless said, a
// call waits for the answer and is repeated until there is one.
//
// Threads: one thread calls.
// Errors: kCancelled           the job has ended, or this process must end
//         kFailedPrecondition  this incarnation is no member any more
//         kInvalidArgument     the job refuses a gradient, e.g. for NaNs
class StepClient {
 public:
  virtual ~StepClient() = default;

  // Copies the variables of one step into the worker's memory, unless they are
  // there already, and returns the step. Strict mode: those of `step`; if that
  // is gone, returns a later step, and memory may have values of several: the
  // pass must be dropped. `step` -1: the newest values, each part by itself.
  virtual absl::StatusOr<int64_t> Pull(int64_t step) = 0;

  // The values that PullAgain() copies.
  enum class PulledAgain {
    kRows,          // those of the rows that are chosen in memory
    kRowsAndTaken,  // also those of variables that were taken since they came
  };
  // As Pull(), in the middle of a pass: all other values stay as they are, also
  // in compatible mode. A message brings several small variables: kRowsAndTaken
  // may copy the values of some that were not taken.
  virtual absl::StatusOr<int64_t> PullAgain(int64_t step, PulledAgain what) = 0;

  // The kind of rule that chooses the members of the step. It must be equal for
  // all members of one attempt.
  enum class PassKind {
    kAllCount,   // the step's first attempt, whose members tokens select
    kSomeCount,  // any other
    // Shared work. TakeToken() after a push tells ps 0 that all servers have
    // the gradient, so it must not be sent before they have answered the push.
    kShared,
  };
  // Strict mode: begins a pass that has no gradient ready. If `watch` is set,
  // StepIsOver() turns true when the step is committed meanwhile, or when
  // training ends. Must come before the calls below.
  virtual void BeginPass(const PassId& /*pass*/, PassKind /*kind*/,
                         bool /*watch*/) {}
  virtual bool StepIsOver() const { return false; }

  // Strict mode: from now on until the next pass begins, the variable's
  // gradient may be sent and its value be overwritten. Push() makes all others
  // ready.
  virtual void GradientReady(size_t /*variable*/) {}

  // Strict mode: marks the variable as one without a gradient in this pass; its
  // memory must hold zeros. GradientReady() and Push() pass the mark on to the
  // servers until the next pass begins. Must come before GradientReady() for
  // the variable.
  virtual void GradientAbsent(size_t /*variable*/) {}

  // Strict mode: sends the gradients that are ready, and from now on those that
  // become ready. Never waits. Push() for the same pass and attempt must
  // follow.
  virtual void BeginPush(const PassId& /*pass*/, int64_t /*attempt*/) {}

  // Strict mode: announces that the gradient is ready or about to be. Returns
  // the decision whether this worker is in the set of the step.
  virtual absl::StatusOr<Announcement> Announce(const PassId& pass) = 0;

  // Sends the gradients in the worker's memory and waits for the answers. In
  // strict mode (attempt > 0) these bring the new values, which overwrite the
  // old ones in the worker's memory part by part.
  virtual absl::StatusOr<PushCounts> Push(const PassId& pass,
                                          int64_t attempt) = 0;

  // Strict mode: sends as Push() does, but does not wait. Push() for the same
  // pass and attempt must follow, and no gradient may be written before.
  virtual void SendRest(const PassId& /*pass*/, int64_t /*attempt*/) {}

  // False if the answers to pushes bring no values, as those of mirrors, and
  // those of a job that limits the mean of gradients: then no pass may begin
  // early. Constant.
  virtual bool PushesBringValues() const { return true; }

  // After SendRest(): waits until the answers have brought the values of
  // variables [first, first + count). These are the next step's if its token
  // names the attempt of the push.
  //
  //   kAborted  the answers bring no values of some of them
  virtual absl::Status AwaitValues(size_t /*first*/, size_t /*count*/) {
    return absl::AbortedError("no push brings values");
  }

  // Waits for the token after `pass`, whose gradient was pushed for `attempt`
  // (0: not pushed).
  virtual absl::StatusOr<Token> TakeToken(const PassId& pass,
                                          int64_t attempt) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_STEP_CLIENT_H_
