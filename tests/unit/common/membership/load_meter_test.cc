#include "common/membership/load_meter.h"

#include <ctime>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Uses a twentieth of a second of processor time.
void KeepAProcessorBusy() {
  const std::clock_t began = std::clock();
  while (std::clock() - began < CLOCKS_PER_SEC / 20) {
  }
}

TEST(LoadMeterTest, ProcessorsAreThoseSinceTheCallBefore) {
  LoadMeter meter;
  const absl::Time began = absl::UnixEpoch() + absl::Hours(1);
  EXPECT_EQ(meter.Measure(began).processors, 0);

  KeepAProcessorBusy();
  const ProcessLoad load = meter.Measure(began + absl::Milliseconds(500));

  EXPECT_GT(load.processors, 0.08);
  EXPECT_LT(load.processors, 1);
  EXPECT_GT(load.resident_bytes, 0);
  EXPECT_GT(load.memory_limit_bytes, load.resident_bytes);
}

TEST(LoadMeterTest, ClockThatGoesBackMeasuresNothing) {
  LoadMeter meter;
  const absl::Time began = absl::UnixEpoch() + absl::Hours(1);
  meter.Measure(began);
  KeepAProcessorBusy();

  EXPECT_EQ(meter.Measure(began - absl::Seconds(1)).processors, 0);
}

}  // namespace
}  // namespace lockstep
