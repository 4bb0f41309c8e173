#include "common/membership/load_meter.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(LoadMeterTest, ProcessorsAreThoseSinceTheCallBefore) {
  LoadMeter meter;
  const absl::Time began = absl::Now();
  EXPECT_EQ(meter.Measure(began).processors, 0);
  // One thread that is always busy keeps at most one processor busy.
  while (absl::Now() - began < absl::Milliseconds(200)) {
  }
  const ProcessLoad load = meter.Measure(absl::Now());
  EXPECT_GT(load.processors, 0);
  EXPECT_LT(load.processors, 1.3);
  EXPECT_GT(load.resident_bytes, 0);
  EXPECT_GT(load.memory_limit_bytes, load.resident_bytes);
  // The clock goes back.
  EXPECT_EQ(meter.Measure(began).processors, 0);
}

}  // namespace
}  // namespace lockstep
