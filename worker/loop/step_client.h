#ifndef LOCKSTEP_WORKER_LOOP_STEP_CLIENT_H_
#define LOCKSTEP_WORKER_LOOP_STEP_CLIENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep {

// What became of the parts of a push.
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

// What may be done next.
struct Token {
  enum class Kind { kToken, kRedo, kFinished };
  Kind kind = Kind::kToken;
  int64_t step = 0;  // of kToken
  int slot = 0;      // of kToken
  // Of kRedo: the attempt at hand. Of kToken: that which `step` came of, 0
  // where no push led to it.
  int64_t attempt = 0;
  // Of kToken: the attempt to push for, without having announced; 0: announce.
  int64_t selected_attempt = 0;
  // The step of the pass before went on without its gradient, whatever became
  // of a push.
  bool not_needed = false;
};

// StepClient is what the training loop asks of the servers. Calls wait for the
// answer, through any number of retries.
//
// Errors: kCancelled           the job ended, or this process has to
//         kFailedPrecondition  this incarnation is no member any more
//         kInvalidArgument     a gradient that the job refuses
class StepClient {
 public:
  virtual ~StepClient() = default;

  // Copies all variables of one step into the worker's memory, as far as they
  // are not there already: of `step` in strict mode, or of a later one if that
  // is gone; -1: whatever is newest, each part by itself. Returns the step.
  virtual absl::StatusOr<int64_t> Pull(int64_t step) = 0;

  // What a pass is for: the same for all members of an attempt of a step.
  enum class PassKind {
    kEverybodyCounts,  // the step's first attempt, whose members tokens make
    kSomeCount,
  };
  // Strict mode: a pass begins. Nothing is ready from now on, and if `watch` is
  // set StepIsOver() turns true when the step is committed meanwhile, or when
  // training ends. Needless to call where none of the following is used.
  virtual void BeginPass(const PassId& /*pass*/, PassKind /*kind*/,
                         bool /*watch*/) {}
  virtual bool StepIsOver() const { return false; }

  // Strict mode: the variable's gradient can be sent and its value be
  // overwritten, from now on until the next pass begins. Push() makes the rest
  // ready.
  virtual void GradientReady(size_t /*variable*/) {}

  // Strict mode: sends what is ready, and from now on what becomes ready, as
  // Push(), which has to follow, would. Never waits.
  virtual void BeginPush(const PassId& /*pass*/, int64_t /*attempt*/) {}

  // Strict mode: says that the gradient is ready, or about to be.
  virtual absl::StatusOr<Announcement> Announce(const PassId& pass) = 0;

  // Sends the gradients in the worker's memory. In strict mode (attempt > 0)
  // the answers bring the new values, which overwrite the old ones in the
  // worker's memory part by part.
  virtual absl::StatusOr<PushCounts> Push(const PassId& pass,
                                          int64_t attempt) = 0;

  // Strict mode: begins what Push() does and returns. Push() has to follow, for
  // the same pass and attempt; until then no gradient may be written.
  virtual void SendRest(const PassId& /*pass*/, int64_t /*attempt*/) {}

  // After SendRest(): waits until its answers have brought the values of
  // variables [first, first + count). They are those of the next step if its
  // token says that it came of this attempt.
  //
  //   kAborted  the push brings no values of them
  virtual absl::Status AwaitValues(size_t /*first*/, size_t /*count*/) {
    return absl::AbortedError("no push brings values");
  }

  // Waits for the token after `pass`, whose gradient was pushed for `attempt`
  // (0: not pushed).
  virtual absl::StatusOr<Token> TakeToken(const PassId& pass,
                                          int64_t attempt) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_STEP_CLIENT_H_
