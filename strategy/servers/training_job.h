#ifndef LOCKSTEP_STRATEGY_SERVERS_TRAINING_JOB_H_
#define LOCKSTEP_STRATEGY_SERVERS_TRAINING_JOB_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/collective/value.h"

namespace lockstep::strategy {

// A worker's part of one step of a job.
struct JobPass {
  int64_t step = 0;   // committed steps; the pass computes the next one
  int share = 0;      // 0 unless the job has more shares of a step than workers
  int64_t batch = 0;  // the argument for TrainingJob::Examples()
  // Seed for the random numbers of the pass: equal if it is computed again.
  uint64_t seed = 0;
  int worker = 0;   // index of this task
  int workers = 1;  // of the job

  bool operator==(const JobPass&) const = default;
};

// TrainingJob is a worker's side of a job whose variables lie on servers.
// Variables are numbered in the order in which JoinJob() was passed them.
//
// Threads: one call at a time.
class TrainingJob {
 public:
  virtual ~TrainingJob() = default;

  // Waits for the next pass and for the values of the variables. Returns
  // nullopt if training is over. After a failure of a machine it may return an
  // earlier step again.
  //
  // `group` tells whether the group of the workers lives. While it has ended,
  // the job may wait for a worker that waits for this one to form the group
  // anew, so the call then waits for 10 seconds at most: if the group has ended
  // because training is over, the job tells that soon.
  //
  //   kCancelled           the job was stopped
  //   kFailedPrecondition  Push() was not called for the current pass
  //   others               the job failed, or refused this worker, with the
  //                        chief's reason; of `group`
  virtual absl::StatusOr<std::optional<JobPass>> Next(
      absl::FunctionRef<absl::Status()> group) = 0;

  // After Next() has returned nullopt: true if value() has the values with
  // which training, or this worker's input, has ended. False if the servers
  // were gone before this worker had them, or the job had no step for it.
  virtual bool has_last_values() const = 0;

  // The elements of a variable for the current pass, row-major; valid until
  // Push(). If has_last_values(), those of the end; valid from then on.
  virtual absl::Span<const std::byte> value(size_t variable) const = 0;

  // Hands in the gradients of the pass: one for each variable, of its type and
  // shape, or absent. `loss` is the mean over the examples of the pass.
  //
  //   kAborted  the servers do not need the pass any more: call Next()
  virtual absl::Status Push(absl::Span<const std::optional<Value>> gradients,
                            double loss) = 0;

  // Returns the indices, below `num_examples`, of this worker's examples in a
  // batch.
  //
  //   kInvalidArgument  the job has no batch_size, or `num_examples` is less
  //                     than one batch per worker
  //   kOutOfRange       the job's epochs are over
  virtual absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples,
                                                        int64_t batch) = 0;

  // Ends this worker's part in the job, whose input is over: Next() then
  // returns nullopt. Must be called if Examples() returns kOutOfRange.
  virtual void EndInput() = 0;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_SERVERS_TRAINING_JOB_H_
