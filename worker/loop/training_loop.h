#ifndef LOCKSTEP_WORKER_LOOP_TRAINING_LOOP_H_
#define LOCKSTEP_WORKER_LOOP_TRAINING_LOOP_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/gradient_pass.h"
#include "worker/loop/gradient_source.h"
#include "worker/loop/progress_meter.h"
#include "worker/loop/step_client.h"
#include "worker/loop/strict_pass.h"

namespace lockstep::worker {

// TrainingLoop makes a worker's passes, one after the other, until training
// ends:
//
//   strict      token -> pull -> compute -> token ...
//                                `-> announce -> (push)
//               A pull fetches only values that no push has brought. In a job
//               without backups no pass is announced. A backup drops its pass
//               when the step is over without it: see StrictPass
//   compatible  pull -> compute -> push -> token ...
//
// In a job without backups, the next pass begins early if its source can: its
// first half computes layer by layer as the answers to the pushes bring values,
// while gradients are still on their way. Its token is taken between the
// halves. If another attempt than that of those pushes made the step, the pass
// is dropped and begins again.
//
//   second half 4   |======|
//   pushes 4         |---------|        each brings values of 5 back
//   first half 5             |=====|
//   token 5                        |     these pushes made step 5
//   second half 5                  |======| ...
//
// In strict mode the batch follows from the step, so that a restarted worker
// goes on with the data that it would have had. In compatible mode batches
// follow one another, whatever becomes of their gradients, as in TensorFlow.
//
// Threads: not thread-safe; `leaving` may be set by any thread.
// Borrows: all constructor arguments.
class TrainingLoop {
 public:
  struct Options {
    SyncMode mode = SyncMode::kStrict;
    int replicas_to_aggregate = 1;  // A, as it was when the worker joined
    int total_num_replicas = 1;     // N
    int worker = 0;
    int64_t first_step = 0;  // the global step when this worker joined
    // Strict mode: set when the worker is to leave after the current pass.
    const std::atomic<bool>* leaving = nullptr;
    GradientClipper* clipper = nullptr;  // clips all gradients; null: none
    // The micro-batches of a shared step, whose numbers are the shares of
    // tokens; 0: work is not shared.
    int numbers = 0;
    // Strict mode: the global step that ends training; passes of this step or
    // later ones do not count. 0: training ends with the data.
    int64_t train_steps = 0;
    // When training or the input has ended, Run() pulls the values of the step
    // that was reached: see last_values().
    bool pulls_last_values = false;
  };

  TrainingLoop(const Options& options, StepClient& client,
               GradientSource& source, ProgressMeter& meter);

  // Makes passes until training ends. Must be called once.
  //
  //   kOk          training has ended
  //   kOutOfRange  the end of input
  //   kCancelled   `leaving` is set, or the client was cancelled
  //   others       of the client and the source
  absl::Status Run();

  // After Run(), of the last step that this worker knows of.
  struct LastValues {
    int64_t step = 0;
    // False: they were pulled for a pass of that step, which counts in none,
    // and the source may have taken values away since.
    bool whole = true;
  };
  // nullopt: they were not pulled, and the values in memory may be of several
  // steps.
  std::optional<LastValues> last_values() const { return last_values_; }

 private:
  // Pulls the values of the step that training has reached.
  void PullLast();
  absl::Status RunStrict();
  absl::Status RunCompatible();
  // Makes the pass of `token` and the passes that begin early after it. Returns
  // the first token whose pass has no first half yet.
  absl::StatusOr<Token> RunPasses(Token token);
  // Pulls the values of the token's step and begins its StrictPass in `pass`;
  // leaves `pass` empty if that step is over.
  absl::Status Enter(const Token& token, std::optional<StrictPass>& pass);
  // Ends a pass whose computing returned `computed`. Returns the attempt to
  // push for: 0 for none, kDropped if the pass was dropped.
  static constexpr int64_t kDropped = -1;
  absl::StatusOr<int64_t> Leave(const absl::Status& computed, StrictPass& pass);
  bool IsLeaving() const;
  // True if a step may average the gradient of the pass at hand.
  bool Counts() const;
  // True if the pass after `pass` may begin before the token for it is there.
  bool NextBeginsEarly(const StrictPass& pass) const;
  // Computes the first half of pass `next` from the values that the answers to
  // the current pass's push for `attempt` bring.
  absl::Status BeginEarly(const PassId& next, int64_t attempt);
  // Pushes the gradients of the current pass for `attempt`, unless that is 0,
  // and again for each attempt that a redo names, until the next token.
  absl::StatusOr<Token> PushUntilToken(int64_t attempt);
  absl::StatusOr<PushCounts> Push(int64_t attempt);
  absl::StatusOr<Token> NextToken(int64_t attempt);
  // Both halves of the current pass, on batch `index`.
  absl::Status Compute(int64_t index, GradientPass& pass);
  // The second half of the current pass.
  absl::Status Finish(GradientPass& pass);
  // Strict: the number of shares of a step that this worker computes; with
  // shared work, that of all workers.
  int Shares() const;
  // Strict: the batch of a share of a step.
  int64_t BatchOf(const PassId& pass) const;
  // Checks that no number which follows from the token's step and share
  // overflows.
  //
  //   kInvalidArgument  names both
  absl::Status CheckToken(const Token& token) const;

  const Options options_;
  StepClient& client_;
  GradientSource& source_;
  ProgressMeter& meter_;
  PassId pass_;
  std::optional<LastValues> last_values_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_TRAINING_LOOP_H_
