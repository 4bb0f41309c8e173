#include "worker/data/batch_schedule.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/epoch_permutation.h"
#include "worker/data/epoch_shuffle.h"

namespace lockstep::worker {
namespace {

absl::Status CheckPositive(absl::string_view name, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; it must be > 0"));
}

absl::Status CheckRanges(const BatchSchedule::Options& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPositive("num_examples", options.num_examples));
  LOCKSTEP_RETURN_IF_ERROR(CheckPositive("batch_size", options.batch_size));
  LOCKSTEP_RETURN_IF_ERROR(CheckPositive("num_workers", options.num_workers));
  if (options.worker < 0 || options.worker >= options.num_workers) {
    return absl::InvalidArgumentError(absl::StrCat("worker is ", options.worker,
                                                   "; it must be in [0, ",
                                                   options.num_workers, ")"));
  }
  if (options.epochs < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("epochs is ", options.epochs,
                     "; it must be > 0, or 0 to repeat for ever"));
  }
  return absl::OkStatus();
}

absl::Status CheckEnough(const BatchSchedule::Options& options) {
  // Rounded down: all shards have the same size, and the rest of an epoch's
  // order is left out.
  const int64_t share = options.num_examples / options.num_workers;
  if (share >= options.batch_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("batch_size is ", options.batch_size, ", but ",
                   options.num_examples, " examples over ", options.num_workers,
                   " workers (each replica counts as one) are ", share,
                   " each; make batch_size or the number of workers smaller"));
}

}  // namespace

absl::StatusOr<BatchSchedule> BatchSchedule::Create(const Options& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRanges(options));
  LOCKSTEP_RETURN_IF_ERROR(CheckEnough(options));
  return BatchSchedule(options);
}

BatchSchedule::BatchSchedule(const Options& options)
    : options_(options),
      batches_per_epoch_(options.num_examples / options.num_workers /
                         options.batch_size) {}

absl::Status BatchSchedule::Check(int64_t index) const {
  if (index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch index is ", index, "; it must be >= 0"));
  }
  // CheckEnough() guarantees at least one batch in an epoch.
  if (options_.epochs > 0 && index / batches_per_epoch_ >= options_.epochs) {
    return absl::OutOfRangeError(
        absl::StrCat("end of input: batch ", index, " lies behind epoch ",
                     options_.epochs, ", the last one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> BatchSchedule::Batch(int64_t index) {
  LOCKSTEP_RETURN_IF_ERROR(Check(index));
  const int64_t epoch = index / batches_per_epoch_;
  const int64_t first = index % batches_per_epoch_ * options_.batch_size;
  if (options_.num_examples > kMostListed) return Computed(epoch, first);
  const auto begin = ShardOf(epoch).begin() + first;
  return std::vector<int64_t>(begin, begin + options_.batch_size);
}

std::vector<int64_t> BatchSchedule::Computed(int64_t epoch,
                                             int64_t first) const {
  const EpochPermutation order(options_.num_examples, options_.seed, epoch);
  std::vector<int64_t> ids;
  for (int64_t i = first; i < first + options_.batch_size; ++i) {
    ids.push_back(order.At(options_.worker + i * options_.num_workers));
  }
  return ids;
}

const std::vector<int64_t>& BatchSchedule::ShardOf(int64_t epoch) {
  // A shuffle touches all examples, so it is kept.
  if (shards_[newest_].epoch == epoch) return shards_[newest_].examples;
  newest_ = 1 - newest_;
  Shard& shard = shards_[newest_];
  if (shard.epoch == epoch) return shard.examples;
  const std::vector<int64_t> order =
      EpochShuffle(options_.num_examples, options_.seed, epoch);
  shard.examples.resize(
      static_cast<size_t>(batches_per_epoch_ * options_.batch_size));
  // Every num_workers-th example of the common order, so shards are disjoint
  // without any message between workers.
  size_t place = static_cast<size_t>(options_.worker);
  for (int64_t& id : shard.examples) {
    id = order[place];
    place += static_cast<size_t>(options_.num_workers);
  }
  shard.epoch = epoch;
  return shard.examples;
}

BatchSchedule::Options ScheduleOf(const JobConfig& job, int64_t num_examples,
                                  int64_t worker, int64_t num_workers) {
  return {.num_examples = num_examples,
          .batch_size = job.pass_batch_size(),
          // Micro-batches of shared work are numbered over the whole job, so
          // every worker has the schedule of a single one.
          .num_workers = job.shares_work() ? 1 : num_workers,
          .worker = job.shares_work() ? 0 : worker,
          .seed = job.seed,
          .epochs = job.data.epochs};
}

}  // namespace lockstep::worker
