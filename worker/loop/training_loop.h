#ifndef LOCKSTEP_WORKER_LOOP_TRAINING_LOOP_H_
#define LOCKSTEP_WORKER_LOOP_TRAINING_LOOP_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "worker/loop/gradient_source.h"
#include "worker/loop/progress_meter.h"
#include "worker/loop/step_client.h"
#include "worker/loop/strict_pass.h"

namespace lockstep {

// TrainingLoop makes a worker's passes, one after the other, until training
// ends:
//
//   strict      token -> pull -> compute -> token ...
//                                `-> announce -> (push)
//               where pull asks for what pushes have not brought, nobody
//               announces where everybody is needed, and a backup drops its
//               pass when the step is over without it: see StrictPass
//   compatible  pull -> compute -> push -> token ...
//
// Where everybody is needed, a pass that can wait for its values begins early,
// while the gradients before it are still under way: layers are computed as
// their values come, and the token is taken before the first gradient is
// written. A token that says another step or attempt makes an end of such a
// pass.
//
//   backward 4   |======|
//   pushes 4      |---------|        each brings values of 5 back
//   forward 5            |=====|
//   token 5                    |     step 5 came of these pushes
//   backward 5                 |======| ...
//
// In strict mode the batch follows from the step, so that a worker that was
// restarted goes on with the data that it would have had. In compatible mode
// batches follow one another, whatever becomes of their gradients, as in
// TensorFlow.
//
// Borrows: all that it is made of.
class TrainingLoop {
 public:
  struct Options {
    SyncMode mode = SyncMode::kStrict;
    int replicas_to_aggregate = 1;  // A, as it was when the worker joined
    int total_num_replicas = 1;     // N
    int worker = 0;
    int64_t first_step = 0;  // the global step when this worker joined
    // Strict mode: set when the worker is to leave after the pass at hand.
    const std::atomic<bool>* leaving = nullptr;
  };

  TrainingLoop(const Options& options, StepClient& client,
               GradientSource& source, ProgressMeter& meter);

  // Returns kOk when training has ended, kOutOfRange at the end of input,
  // kCancelled when the worker leaves, and otherwise the errors of its parts.
  absl::Status Run();

 private:
  absl::Status RunStrict();
  absl::Status RunCompatible();
  // Strict passes from a token on, up to one for which none has begun early.
  absl::StatusOr<Token> RunPasses(const Token& token);
  // Pulls for a token and begins its pass; leaves `pass` empty if the step is
  // over.
  absl::Status Enter(const Token& token, std::optional<StrictPass>& pass);
  // The attempt to push for what was computed; 0: none, kDropped: the pass was.
  static constexpr int64_t kDropped = -1;
  absl::StatusOr<int64_t> Leave(const absl::Status& computed, StrictPass& pass);
  bool IsLeaving() const;
  // Whether the pass after `pass` does.
  bool BeginsEarly(const StrictPass& pass) const;
  // Computes the pass after the one at hand, which was pushed for `attempt`.
  // Returns the token between them, `pass` being empty if that ended it.
  absl::StatusOr<Token> ComputeEarly(int64_t attempt,
                                     std::optional<StrictPass>& pass,
                                     absl::Status& computed);
  // Pushes what has been computed, for `attempt` if there is one and for each
  // that follows, until the next token.
  absl::StatusOr<Token> PushUntilToken(int64_t attempt);
  absl::StatusOr<PushCounts> Push(int64_t attempt);
  absl::StatusOr<Token> NextToken(int64_t attempt);
  absl::Status Compute(int64_t step, int64_t index, const PassHooks& hooks);
  // Strict: how many passes of a step are this worker's.
  int Shares() const;
  // Strict: the batch of a share of a step.
  int64_t BatchOf(const PassId& pass) const;
  // Whether the token's step and share are ones that can be, so that no number
  // which follows from them overflows.
  //
  //   kInvalidArgument  names both
  absl::Status CheckToken(const Token& token) const;

  const Options options_;
  StepClient& client_;
  GradientSource& source_;
  ProgressMeter& meter_;
  PassId pass_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_TRAINING_LOOP_H_
