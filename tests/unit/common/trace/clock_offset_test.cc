#include "common/trace/clock_offset.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ClockOffsetTest, KnowsNothingAtFirst) {
  EXPECT_EQ(ClockOffset().Get().error, -1);
}

TEST(ClockOffsetTest, TheOtherClockWasReadInTheMiddle) {
  ClockOffset offset;
  offset.Note(1000, 1200, 51100);
  EXPECT_EQ(offset.Get().offset, 50000);
  EXPECT_EQ(offset.Get().error, 100);
}

TEST(ClockOffsetTest, TheShortestRoundTripCounts) {
  ClockOffset offset;
  offset.Note(1000, 1900, 2500);
  offset.Note(2000, 2020, 3010);
  offset.Note(4000, 4900, 5500);
  EXPECT_EQ(offset.Get().offset, 1000);
  EXPECT_EQ(offset.Get().error, 10);
}

TEST(ClockOffsetTest, OldRoundTripsCountNoMore) {
  ClockOffset offset;
  offset.Note(0, 2, 1);
  for (size_t i = 0; i < ClockOffset::kRoundTrips; ++i) {
    offset.Note(100, 140, 620);
  }
  EXPECT_EQ(offset.Get().offset, 500);
  EXPECT_EQ(offset.Get().error, 20);
}

// A process on another machine has taken the place of the other one.
TEST(ClockOffsetTest, RoundTripsToAnotherClockDoNotCount) {
  ClockOffset offset;
  offset.Note(1000, 1002, 1001 + 5'000'000);
  offset.Note(2000, 2200, 2100 - 70'000);
  EXPECT_EQ(offset.Get().offset, -70'000);
  EXPECT_EQ(offset.Get().error, 100);
  // A longer one that agrees leaves the estimate as it is.
  offset.Note(3000, 3600, 3300 - 69'800);
  EXPECT_EQ(offset.Get().offset, -70'000);
  EXPECT_EQ(offset.Get().error, 100);
}

// The true offset is within the error, wherever in between the other process
// has read its clock.
TEST(ClockOffsetTest, TheErrorHoldsForSlowWaysThereAndBack) {
  for (const int64_t there : {0, 1, 400, 999, 1001}) {
    ClockOffset offset;
    offset.Note(5000, 6001, 5000 + there + 70000);
    const ClockOffset::Estimate estimate = offset.Get();
    EXPECT_LE(std::abs(estimate.offset - 70000), estimate.error) << there;
  }
}

TEST(ClockOffsetTest, IgnoresAnAnswerBeforeTheCall) {
  ClockOffset offset;
  offset.Note(100, 50, 70);
  EXPECT_EQ(offset.Get().error, -1);
}

}  // namespace
}  // namespace lockstep
