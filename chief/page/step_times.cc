#include "chief/page/step_times.h"

#include <algorithm>
#include <cmath>

namespace lockstep::chief {
namespace {

// 1.05^450 microseconds are an hour.
constexpr double kBase = 1.05;

}  // namespace

int StepTimes::BucketOf(absl::Duration time) {
  // The logarithm needs a positive number.
  const double micros = std::max(absl::ToDoubleMicroseconds(time), 1.0);
  return std::min(static_cast<int>(std::log(micros) / std::log(kBase)),
                  kBuckets - 1);
}

absl::Duration StepTimes::TimeOf(int bucket) {
  return absl::Microseconds(std::pow(kBase, bucket + 0.5));
}

void StepTimes::Begin(int64_t step, absl::Time now) {
  step_ = step;
  at_ = now;
}

std::optional<absl::Duration> StepTimes::Reach(int64_t step, absl::Time now) {
  // The job has gone back, so the time since then is that of no step.
  if (!step_.has_value() || step <= *step_) {
    Begin(step, now);
    return std::nullopt;
  }
  const int64_t steps = step - *step_;
  const absl::Duration each = (now - at_) / steps;
  counts_[static_cast<size_t>(BucketOf(each))] += steps;
  count_ += steps;
  Begin(step, now);
  return each;
}

int StepTimes::BucketAt(double share) const {
  const auto wanted =
      static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t seen = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[static_cast<size_t>(bucket)];
    if (seen >= wanted) return bucket;
  }
  return kBuckets - 1;
}

std::optional<StepTimes::Quantiles> StepTimes::Take() {
  if (count_ == 0) return std::nullopt;
  const Quantiles quantiles{TimeOf(BucketAt(0.5)), TimeOf(BucketAt(0.99))};
  counts_ = {};
  count_ = 0;
  return quantiles;
}

}  // namespace lockstep::chief
