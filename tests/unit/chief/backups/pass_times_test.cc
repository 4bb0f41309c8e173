#include "chief/backups/pass_times.h"

#include "chief/backups/pass_distribution.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::DoubleNear;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kLong = 1e9;  // passes: nothing is forgotten

PassTime Ended(int ms) { return {absl::Milliseconds(ms), false}; }
PassTime Dropped(int ms) { return {absl::Milliseconds(ms), true}; }

TEST(PassDistributionTest, BinsAreATwoHundredthApartAndBounded) {
  for (const double seconds : {1e-6, 0.05, 1.0, 3600.0}) {
    EXPECT_NEAR(SecondsOf(BinOf(seconds)) / seconds, 1, 0.011);
  }
  EXPECT_EQ(BinOf(-1), 0);
  EXPECT_EQ(BinOf(0), 0);
  EXPECT_EQ(BinOf(1e30), kLastBin);
}

TEST(PassTimesTest, WithoutPassesNothingIsKnown) {
  const PassTimes times(kLong);
  EXPECT_THAT(times.Distribution(), IsEmpty());
}

TEST(PassTimesTest, EndedPassesAreCounted) {
  PassTimes times(kLong);
  for (const int ms : {50, 50, 50, 200}) times.Add(Ended(ms));

  const PassDistribution distribution = times.Distribution();
  ASSERT_THAT(distribution, SizeIs(2));
  EXPECT_EQ(distribution[0].bin, BinOf(0.05));
  EXPECT_NEAR(distribution[0].mass, 0.75, 1e-6);
  EXPECT_NEAR(distribution[1].mass, 0.25, 1e-6);
  EXPECT_EQ(times.count(), 4);
}

// One of the three that lasted longer than 50 ms was dropped before 100 ms.
TEST(PassTimesTest, DroppedPassesCountUntilTheyWereDropped) {
  PassTimes times(kLong);
  times.Add(Ended(50));
  times.Add(Dropped(60));
  times.Add(Ended(100));
  times.Add(Ended(200));

  const PassDistribution distribution = times.Distribution();
  ASSERT_THAT(distribution, SizeIs(3));
  EXPECT_NEAR(distribution[0].mass, 0.25, 1e-6);
  EXPECT_NEAR(distribution[1].mass, 0.375, 1e-6);
  EXPECT_NEAR(distribution[2].mass, 0.375, 1e-6);
}

TEST(PassTimesTest, PassIsDroppedAfterThoseThatEndedJustBefore) {
  PassTimes times(kLong);
  for (int i = 0; i < 9; ++i) times.Add(Ended(1000));
  times.Add(Dropped(1007));  // in the same bin
  times.Add(Ended(5000));
  EXPECT_NEAR(times.Distribution()[1].mass, 2.0 / 11, 1e-6);
}

TEST(PassTimesTest, PassesLongerThanAnySeenEndNext) {
  PassTimes times(kLong);
  times.Add(Dropped(50));
  const PassDistribution distribution = times.Distribution();
  ASSERT_THAT(distribution, SizeIs(1));
  EXPECT_EQ(distribution[0].bin, BinOf(0.05));
  EXPECT_NEAR(distribution[0].mass, 1, 1e-9);
}

TEST(PassTimesTest, PassAtHandCountsAsDropped) {
  PassTimes times(kLong);
  times.Add(Ended(50));
  const PassDistribution distribution =
      times.Distribution(PassTimes::Memory::kAll, absl::Milliseconds(80));
  ASSERT_THAT(distribution, SizeIs(2));
  EXPECT_NEAR(distribution[0].mass, 0.5, 1e-6);
  EXPECT_EQ(distribution[1].bin, BinOf(0.08));
}

TEST(PassTimesTest, WeightHalvesAfterTheHalfLife) {
  PassTimes times(10);
  for (int i = 0; i < 100; ++i) times.Add(Ended(50));
  for (int i = 0; i < 10; ++i) times.Add(Ended(100));

  const PassDistribution distribution = times.Distribution();
  ASSERT_THAT(distribution, SizeIs(2));
  EXPECT_THAT(distribution[1].mass, DoubleNear(0.5, 0.01));
}

TEST(PassTimesTest, SlowEndIsRememberedWhilePassesAreDropped) {
  PassTimes times(10);
  for (int i = 0; i < 20; ++i) times.Add(Ended(200));
  for (int i = 0; i < 1000; ++i) times.Add(Dropped(50));

  const PassDistribution distribution = times.Distribution();
  ASSERT_THAT(distribution, SizeIs(1));
  EXPECT_EQ(distribution[0].bin, BinOf(0.2));
  EXPECT_NEAR(distribution[0].mass, 1, 1e-6);
}

TEST(PassTimesTest, FreshMemoryForgetsTheSlowEnd) {
  PassTimes times(10);
  for (int i = 0; i < 20; ++i) times.Add(Ended(200));
  for (int i = 0; i < 1000; ++i) times.Add(Dropped(50));

  const PassDistribution fresh = times.Distribution(PassTimes::Memory::kFresh);
  ASSERT_THAT(fresh, SizeIs(1));
  EXPECT_EQ(fresh[0].bin, BinOf(0.05));
}

TEST(PassTimesTest, MillionsOfPassesKeepTheirWeights) {
  PassTimes times(1);  // weights overflow a double every 1024 passes
  for (int i = 0; i < 10000; ++i) times.Add(Ended(i % 2 == 0 ? 50 : 100));

  const PassDistribution distribution = times.Distribution();
  ASSERT_THAT(distribution, SizeIs(2));
  EXPECT_NEAR(distribution[1].mass, 2.0 / 3, 1e-6);
}

}  // namespace
}  // namespace lockstep::chief
