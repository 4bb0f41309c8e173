#include "deploy/cli/spans/intervals.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(IntervalsTest, MergesWhatOverlapsOrTouches) {
  Intervals set;
  set.Add(10, 20);
  set.Add(30, 40);
  set.Add(20, 25);
  set.Add(12, 15);
  EXPECT_EQ(set.Overlap(0, 100), 25);
  set.Add(5, 35);
  EXPECT_EQ(set.Overlap(0, 100), 35);
  EXPECT_EQ(set.Overlap(38, 100), 2);
  EXPECT_EQ(set.Overlap(40, 100), 0);
  EXPECT_EQ(set.Overlap(7, 9), 2);
}

TEST(IntervalsTest, AnEmptyIntervalAddsNothing) {
  Intervals set;
  set.Add(10, 10);
  set.Add(20, 15);
  EXPECT_EQ(set.Overlap(0, 100), 0);
}

}  // namespace
}  // namespace lockstep::cli
