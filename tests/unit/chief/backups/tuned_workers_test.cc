#include "chief/backups/tuned_workers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class TunedWorkersTest : public ::testing::Test {
 protected:
  // A worker reports a pass of so many milliseconds for the `number`-th time.
  bool Hear(int worker, int64_t number, int ms, uint64_t incarnation = 1) {
    const PassTime pass{absl::Milliseconds(ms), false};
    return workers_.Hear({worker, incarnation, true, number, {&pass, 1}, {}});
  }
  void Learn(int worker, int ms) {
    for (int64_t i = 1; i <= TunedWorkers::kFewPasses; ++i) {
      Hear(worker, i, ms);
    }
  }
  void AtHand(int worker, absl::Duration at_hand, bool alive = true) {
    workers_.Hear({worker, 1, alive, TunedWorkers::kFewPasses, {}, at_hand});
  }

  TunedWorkers workers_{absl::Seconds(2)};
};

TEST_F(TunedWorkersTest, RepeatedNewsCountOnce) {
  EXPECT_TRUE(Hear(0, 1, 50));
  EXPECT_FALSE(Hear(0, 1, 50));
  EXPECT_TRUE(Hear(0, 2, 100));
  EXPECT_NEAR(workers_.Distributions({0}, PassTimes::Memory::kAll)[0][0].mass,
              0.5, 0.01);
}

TEST_F(TunedWorkersTest, OnlyTheNewestPassesAreReported) {
  const PassTime pass{absl::Milliseconds(50), false};
  EXPECT_TRUE(workers_.Hear({0, 1, true, 1000, {&pass, 1}, {}}));
  EXPECT_FALSE(workers_.AreKnown({0}));
}

TEST_F(TunedWorkersTest, NextProcessGoesOnWithWhatIsKnown) {
  Learn(0, 50);
  EXPECT_TRUE(Hear(0, 1, 50, /*incarnation=*/2));
  EXPECT_TRUE(workers_.AreKnown({0}));
}

TEST_F(TunedWorkersTest, WorkerIsKnownAfterAFewPasses) {
  for (int64_t i = 1; i < TunedWorkers::kFewPasses; ++i) Hear(0, i, 50);
  EXPECT_FALSE(workers_.AreKnown({0}));
  Hear(0, TunedWorkers::kFewPasses, 50);
  EXPECT_TRUE(workers_.AreKnown({0}));
}

TEST_F(TunedWorkersTest, DeadAndUnknownWorkersAreAway) {
  Learn(0, 50);
  EXPECT_FALSE(workers_.IsAway(0));
  EXPECT_TRUE(workers_.IsAway(7));
  AtHand(0, {}, /*alive=*/false);
  EXPECT_TRUE(workers_.IsAway(0));
}

TEST_F(TunedWorkersTest, WorkerThatHangsIsAway) {
  Learn(0, 50);
  AtHand(0, absl::Milliseconds(1900));
  EXPECT_FALSE(workers_.IsAway(0));
  AtHand(0, absl::Milliseconds(2100));
  EXPECT_TRUE(workers_.IsAway(0));
}

TEST_F(TunedWorkersTest, EachLossIsCountedOnce) {
  Learn(0, 50);
  EXPECT_EQ(workers_.losses(), 0);
  AtHand(0, {}, /*alive=*/false);
  AtHand(0, {}, /*alive=*/false);
  EXPECT_EQ(workers_.losses(), 1);
  Hear(0, 1, 50, /*incarnation=*/2);  // the next process
  EXPECT_EQ(workers_.losses(), 1);
  Hear(0, 1, 50, /*incarnation=*/3);  // restarted within its lease
  EXPECT_EQ(workers_.losses(), 2);
}

TEST_F(TunedWorkersTest, WorkersThatAreSentBackToRegisterAreNotLost) {
  for (int worker = 0; worker < 8; ++worker) {
    Learn(worker, 50);
    workers_.Hear({worker,
                   1,
                   /*alive=*/false,
                   TunedWorkers::kFewPasses,
                   {},
                   {},
                   /*sent_back=*/true});
    Hear(worker, 1, 50, /*incarnation=*/2);
  }
  EXPECT_EQ(workers_.losses(), 0);
  Hear(7, 1, 50, /*incarnation=*/3);  // not sent back
  EXPECT_EQ(workers_.losses(), 1);
}

TEST_F(TunedWorkersTest, WorkerThatNeverCameIsNotLost) {
  workers_.Hear({0, 0, false, 0, {}, {}});
  EXPECT_EQ(workers_.losses(), 0);
}

TEST_F(TunedWorkersTest, LongPassesAreNoHang) {
  Learn(0, 5000);
  AtHand(0, absl::Seconds(10));
  EXPECT_FALSE(workers_.IsAway(0));
  AtHand(0, absl::Seconds(21));
  EXPECT_TRUE(workers_.IsAway(0));
}

TEST_F(TunedWorkersTest, PresentWorkersAreThoseThatAreNotAway) {
  Learn(0, 50);
  Learn(2, 50);
  EXPECT_THAT(workers_.Present({0, 1, 2}), ElementsAre(0, 2));
}

TEST_F(TunedWorkersTest, WorkersThatLeftAreForgotten) {
  Learn(0, 50);
  Learn(1, 50);
  workers_.Keep({1});
  EXPECT_TRUE(workers_.IsAway(0));
  EXPECT_FALSE(workers_.IsAway(1));
}

TEST_F(TunedWorkersTest, DescriptionNamesTheSlowest) {
  Learn(0, 50);
  Learn(1, 200);
  Learn(2, 50);
  EXPECT_THAT(workers_.Describe({0, 1, 2}), HasSubstr("worker 1 "));
}

}  // namespace
}  // namespace lockstep::chief
