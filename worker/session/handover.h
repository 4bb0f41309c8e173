#ifndef LOCKSTEP_WORKER_SESSION_HANDOVER_H_
#define LOCKSTEP_WORKER_SESSION_HANDOVER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/plan/step_vocabulary.h"
#include "worker/loop/gradient_pass.h"
#include "worker/loop/gradient_source.h"

namespace lockstep::worker {

// Handover passes control between the thread of a training loop and the thread
// of a program that computes gradients in a loop of its own:
//
//   loop      OfferRows() ......, pull, OfferPass() .................., push
//   program   Take() -> choose rows, Chosen()
//                                       Take() -> compute, Ready(), Done()
//
// While one side works the other waits, but for Cancel(): then the loop goes on
// at once, and the program learns with its next call that the pass is lost.
//
// Threads: OfferRows(), OfferPass() and Reopen() are of the loop's thread;
//          Take() to Done() of the program's; the others of any.
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
  };

  // Waits for Chosen().
  //
  //   kCancelled  Cancel() was called
  absl::Status OfferRows(const Offer& offer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for Done(), and returns its argument. Calls `pass` in the program's
  // thread meanwhile.
  //
  //   kCancelled  Cancel() was called
  absl::StatusOr<GradientResult> OfferPass(const Offer& offer,
                                           GradientPass& pass)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the offers at hand and all later ones return kCancelled.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the effect of Cancel(): a new membership begins.
  void Reopen() ABSL_LOCKS_EXCLUDED(mutex_);
  // There will be no more offers, for this reason.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for an offer or the end, at most `timeout`; kNothing: neither came.
  // An offer that was taken is returned until the program has answered it.
  Stage Take(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  Offer offer() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status end() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Errors of the calls below:
  //   kFailedPrecondition  the program has not taken such an offer
  //   kAborted             the pass is not needed any more: the program
  //                        should go on with Take()

  // The rows are chosen.
  absl::Status Chosen() ABSL_LOCKS_EXCLUDED(mutex_);
  // The gradient of a variable is final: see GradientPass::GradientReady().
  absl::Status Ready(size_t variable) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same of a variable without one: see GradientPass::GradientAbsent().
  absl::Status Absent(size_t variable) ABSL_LOCKS_EXCLUDED(mutex_);
  // Pulls rows of tables that were chosen since the pass began: see
  // GradientPass::PullRows().
  absl::Status PullRows() ABSL_LOCKS_EXCLUDED(mutex_);
  // Should be called now and then in a long computation.
  absl::Status CheckWanted() ABSL_LOCKS_EXCLUDED(mutex_);
  // The pass is computed.
  absl::Status Done(const GradientResult& result) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Calls `pass_` in the program's thread; an error ends the pass.
  absl::Status Inside(absl::FunctionRef<absl::Status(GradientPass&)> call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the loop wait until the program has answered, or Cancel().
  absl::Status Wait(Stage stage, const Offer& offer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The program answers the offer at hand.
  absl::Status Answer(Stage stage, const absl::StatusOr<GradientResult>& answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Check(Stage stage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kNothing;
  Offer offer_ ABSL_GUARDED_BY(mutex_);
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  // The program had an offer when it was withdrawn, and does not know it yet.
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // The program's thread is in a call of `pass_`, which must outlive it.
  bool inside_ ABSL_GUARDED_BY(mutex_) = false;
  GradientPass* pass_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<absl::StatusOr<GradientResult>> answer_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HANDOVER_H_
