#ifndef LOCKSTEP_CHIEF_PAGE_STEP_TIMES_H_
#define LOCKSTEP_CHIEF_PAGE_STEP_TIMES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace lockstep::chief {

// StepTimes collects the times of steps, and forgets them when it returns their
// quantiles. It needs 4 KiB for any number of steps: a time is known to 2.5 %,
// from a microsecond to an hour.
//
// Threads: not thread-safe.
class StepTimes {
 public:
  struct Quantiles {
    absl::Duration median;
    absl::Duration p99;  // 99 of 100 steps took at most that
  };

  // Begins, or begins again, at a step.
  void Begin(int64_t step, absl::Time now);
  // Records that `step` is committed. Returns the mean time of the steps since
  // the previous call, which may be several; nullopt if there are none.
  std::optional<absl::Duration> Reach(int64_t step, absl::Time now);

  // The newest step; nullopt before Begin() and Reach().
  std::optional<int64_t> step() const { return step_; }

  // Returns the quantiles of the steps since the previous call; nullopt if
  // there were none.
  std::optional<Quantiles> Take();

 private:
  static constexpr int kBuckets = 460;

  static int BucketOf(absl::Duration time);
  // The time in the middle of a bucket.
  static absl::Duration TimeOf(int bucket);
  // The lowest bucket with `share` of all times in it and below.
  int BucketAt(double share) const;

  std::optional<int64_t> step_;
  absl::Time at_;
  std::array<int64_t, kBuckets> counts_ = {};
  int64_t count_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_STEP_TIMES_H_
