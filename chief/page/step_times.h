#ifndef LOCKSTEP_CHIEF_PAGE_STEP_TIMES_H_
#define LOCKSTEP_CHIEF_PAGE_STEP_TIMES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace lockstep::chief {

// StepTimes collects the times of steps, and forgets them when it is asked for
// their quantiles. It has 4 KiB, whatever the number of steps: a time is known
// to 2.5 %, from a microsecond to an hour.
//
// Threads: not guarded.
class StepTimes {
 public:
  struct Quantiles {
    absl::Duration median;
    absl::Duration p99;  // 99 of 100 steps took at most that
  };

  // The job begins, or begins again, at a step.
  void Begin(int64_t step, absl::Time now);
  // Returns the time of each of the steps since the call before, which may be
  // several; nothing where there is none.
  std::optional<absl::Duration> Reach(int64_t step, absl::Time now);

  // The newest step; nothing before Begin() and Reach().
  std::optional<int64_t> step() const { return step_; }

  // The quantiles of the steps since the call before; nothing if there were
  // none.
  std::optional<Quantiles> Take();

 private:
  static constexpr int kBuckets = 460;

  static int BucketOf(absl::Duration time);
  // The time in the middle of a bucket.
  static absl::Duration TimeOf(int bucket);
  // The least bucket up to which `share` of all times are.
  int BucketAt(double share) const;

  std::optional<int64_t> step_;
  absl::Time at_;
  std::array<int64_t, kBuckets> counts_ = {};
  int64_t count_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_STEP_TIMES_H_
