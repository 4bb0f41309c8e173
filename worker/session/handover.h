#ifndef LOCKSTEP_WORKER_SESSION_HANDOVER_H_
#define LOCKSTEP_WORKER_SESSION_HANDOVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/plan/step_vocabulary.h"
#include "worker/loop/gradient_pass.h"
#include "worker/loop/gradient_source.h"
#include "worker/session/program_membership.h"

namespace lockstep::worker {

// Handover passes control between the thread of a training loop and the thread
// of a program that computes gradients in a loop of its own:
//
//   loop      OfferRows() ......, pull, OfferPass() .................., push
//   program   Take() -> choose rows, Chosen()
//                                       Take() -> compute, Ready(), Done()
//
// A pass that begins early has two halves, and the loop takes its token between
// them. It goes on with Resume(), or drops the pass with any other offer:
//
//   loop      OfferEarly() ......................, token, Resume() ......, push
//   program   Take() -> NeedValues(), BeginGradients() ... -> Ready(), Done()
//
// One side waits while the other works. Cancel() ends that: the loop's call
// returns at once (or as soon as a call of the GradientPass in the program's
// thread has ended), and the program's next call returns kAborted.
//
// Threads: OfferRows() to Resume() and Reopen() must be called in the loop's
//          thread, Take() to Done() in the program's; all others in any.
class Handover {
 public:
  enum class Stage {
    kNothing,  // the loop is at work
    kRows,     // the program must choose rows of tables, then call Chosen()
    kPass,     // the program must compute the pass, then call Done()
    kEnded,    // there will be no more passes; see end()
  };

  // A pass, with the index of its batch.
  struct Offer {
    PassId pass;
    int64_t batch = 0;
    // The membership that the pass is of: the facts of its job, and the memory
    // of its values and gradients.
    std::shared_ptr<const ProgramMembership> membership = nullptr;
    // Values may still arrive: NeedValues() and BeginGradients() must be called
    // in the pass.
    bool early = false;
  };

  // Waits for Chosen().
  //
  //   kCancelled   Cancel() was called
  //   kOutOfRange  EndInput() was called
  absl::Status OfferRows(const Offer& offer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for Done(), and returns its argument. `pass` is called in the
  // program's thread, but never after this call has returned.
  //
  //   kCancelled   Cancel() was called
  //   kOutOfRange  EndInput() was called
  //   others       of `pass`, which end the pass
  absl::StatusOr<GradientResult> OfferPass(const Offer& offer,
                                           GradientPass& pass)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As OfferPass(), for the first half of a pass: waits for BeginGradients().
  absl::Status OfferEarly(const Offer& offer, GradientPass& pass)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // After OfferEarly(): as OfferPass(), for the second half of that pass.
  absl::StatusOr<GradientResult> Resume(GradientPass& pass)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the current offer and all later ones return kCancelled.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the effect of Cancel() and of EndInput(). Must be called when a new
  // membership begins.
  void Reopen() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes Take() return kEnded from now on, and end() return `why`. No offer
  // may follow.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits at most `timeout` for an offer, of which it sets `offer`, or the end;
  // returns kNothing if neither came. Returns the same offer again until the
  // program has answered it with Chosen() or Done().
  Stage Take(absl::Duration timeout, Offer& offer) ABSL_LOCKS_EXCLUDED(mutex_);
  // True while an offer has no answer.
  bool offers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // ended() is true after End(); end() is the reason that End() was given.
  absl::Status end() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Errors of the calls below:
  //   kFailedPrecondition  the program has not taken an offer of that stage
  //   kAborted             the pass is not needed any more: the program
  //                        should go on with Take()

  // As GradientPass::NeedValues().
  absl::Status NeedValues(size_t first, size_t count)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Must be called before the program writes a gradient: waits at most
  // `timeout` for Resume() if the pass began early. False: the time is up, and
  // it must be called again.
  absl::StatusOr<bool> BeginGradients(absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers kRows: the program has chosen the rows of all tables.
  absl::Status Chosen() ABSL_LOCKS_EXCLUDED(mutex_);
  // As GradientPass::GradientReady().
  absl::Status Ready(size_t variable) ABSL_LOCKS_EXCLUDED(mutex_);
  // As GradientPass::GradientAbsent().
  absl::Status Absent(size_t variable) ABSL_LOCKS_EXCLUDED(mutex_);
  // Pulls rows of tables that were chosen since the pass began: see
  // GradientPass::PullRows().
  absl::Status PullRows() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns an error if the pass is not needed any more. Should be called every
  // few milliseconds of a long computation.
  absl::Status CheckWanted() ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers an offer of any stage: there is no input for it, nor for a later
  // one. The loop's call and all later ones return kOutOfRange, and the
  // program's calls kAborted until its next Take(). In an early pass whose
  // gradients are to begin, Resume() is that call. Does nothing without an
  // offer.
  void EndInput() ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers kPass: all gradients of the pass are in memory.
  absl::Status Done(const GradientResult& result) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Passes `pass_` to `call` in the program's thread, without the lock. An
  // error of `call` ends the pass.
  absl::Status Inside(absl::FunctionRef<absl::Status(GradientPass&)> call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Publishes an offer and waits until the program has answered it or Cancel()
  // was called.
  absl::Status Publish(Stage stage, const Offer& offer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores the program's answer to the current offer, which must be `stage`.
  absl::Status Answer(Stage stage, const absl::StatusOr<GradientResult>& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if the program has taken an offer of `stage` and not answered it.
  absl::Status Check(Stage stage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kNothing;
  Offer offer_ ABSL_GUARDED_BY(mutex_);
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;  // Take() returned the offer
  // BeginGradients() was called in an early pass, which is neither resumed nor
  // dropped.
  bool halfway_ ABSL_GUARDED_BY(mutex_) = false;
  // An offer was withdrawn after the program had taken it. The program's calls
  // return kAborted until its next Take().
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // EndInput() was called in this membership.
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  // The program's thread is in a call of `pass_`, which must not be destroyed
  // before that call ends.
  bool inside_ ABSL_GUARDED_BY(mutex_) = false;
  GradientPass* pass_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<absl::StatusOr<GradientResult>> answer_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HANDOVER_H_
