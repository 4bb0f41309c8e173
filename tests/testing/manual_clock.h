#ifndef LOCKSTEP_TESTS_TESTING_MANUAL_CLOCK_H_
#define LOCKSTEP_TESTS_TESTING_MANUAL_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace lockstep::testing {

// ManualClock advances only when a test advances it.
//
// Threads: safe to share.
class ManualClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixNanos(nanoseconds_); }
  void Advance(absl::Duration time) {
    nanoseconds_ += absl::ToInt64Nanoseconds(time);
  }

 private:
  std::atomic<int64_t> nanoseconds_ = int64_t{1000} * 1'000'000'000;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_MANUAL_CLOCK_H_
