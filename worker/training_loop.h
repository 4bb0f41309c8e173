#ifndef LOCKSTEP_WORKER_TRAINING_LOOP_H_
#define LOCKSTEP_WORKER_TRAINING_LOOP_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "worker/gradient_source.h"
#include "worker/progress_meter.h"
#include "worker/step_client.h"

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
  // One strict pass for a token, up to the next token.
  absl::StatusOr<Token> RunPass(const Token& token);
  // Pushes what has been computed, for `attempt` if there is one and for each
  // that follows, until the next token.
  absl::StatusOr<Token> PushUntilToken(int64_t attempt);
  absl::StatusOr<PushCounts> Push(int64_t attempt);
  absl::StatusOr<Token> NextToken(int64_t attempt);
  absl::Status Compute(int64_t index, const PassHooks& hooks);
  // Strict: the batch of a share of a step.
  int64_t BatchOf(const PassId& pass) const;

  const Options options_;
  StepClient& client_;
  GradientSource& source_;
  ProgressMeter& meter_;
  PassId pass_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAINING_LOOP_H_
