#ifndef LOCKSTEP_WORKER_DATA_BATCH_SCHEDULE_H_
#define LOCKSTEP_WORKER_DATA_BATCH_SCHEDULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"

namespace lockstep::worker {

// BatchSchedule chooses the examples of a worker's batches: a function of its
// options and of the batch's index alone, so that a restarted worker continues
// with exactly the batch that it would have had.
//
// In each epoch the whole set is shuffled anew; worker w of W takes the places
// w, w + W, w + 2W, ... of that order, and cuts them into batches. All workers
// have equally many; examples that fill no batch of all workers are left out
// until the next epoch.
//
// The order is EpochShuffle()'s for up to kMostListed examples, and
// EpochPermutation's for more. A schedule of the former holds the lists of this
// worker's examples in two epochs, with 8 bytes for each.
//
// Threads: not thread-safe.
class BatchSchedule {
 public:
  static constexpr int64_t kMostListed = int64_t{1} << 25;

  struct Options {
    int64_t num_examples = 0;  // > 0
    int64_t batch_size = 0;    // > 0, examples per worker and batch
    int64_t num_workers = 1;   // > 0
    int64_t worker = 0;        // in [0, num_workers)
    uint64_t seed = 1;         // the same for all workers of a job
    int64_t epochs = 0;        // 0: repeat for ever
  };

  //   kInvalidArgument  an option outside its range, or too few examples for
  //                     one batch per worker; names the option
  static absl::StatusOr<BatchSchedule> Create(const Options& options);

  // Checks that Batch() would succeed. Errors as Batch().
  absl::Status Check(int64_t index) const;

  // Returns the ids of the `batch_size` examples of batch `index`. Any order of
  // indices is allowed. A batch of another epoch than the last two costs one
  // shuffle if num_examples is at most kMostListed.
  //
  //   kInvalidArgument  `index` is negative
  //   kOutOfRange       the batch lies behind the last epoch: end of input
  absl::StatusOr<std::vector<int64_t>> Batch(int64_t index);

 private:
  explicit BatchSchedule(const Options& options);
  // Returns this worker's examples of an epoch, in order.
  const std::vector<int64_t>& ShardOf(int64_t epoch);
  // Computes the batch that begins at place `first` of this worker's examples,
  // without a list of them.
  std::vector<int64_t> Computed(int64_t epoch, int64_t first) const;

  Options options_;
  int64_t batches_per_epoch_;

  struct Shard {
    int64_t epoch = -1;
    std::vector<int64_t> examples;  // of all batches
  };
  // Two: a reader that prefetches changes between epochs around the end of one.
  std::array<Shard, 2> shards_;
  size_t newest_ = 0;  // the shard that was used last
};

// Returns the options for `worker` of `num_workers` in a job. With shared work
// they are the same for all workers, and the batch index counts the
// micro-batches of all steps.
BatchSchedule::Options ScheduleOf(const JobConfig& job, int64_t num_examples,
                                  int64_t worker, int64_t num_workers);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BATCH_SCHEDULE_H_
