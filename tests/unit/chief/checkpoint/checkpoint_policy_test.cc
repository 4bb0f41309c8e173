#include "chief/checkpoint/checkpoint_policy.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

CheckpointConfig Config(int64_t every_steps, absl::Duration every) {
  CheckpointConfig config;
  config.directory = "/somewhere";
  config.every_steps = every_steps;
  config.every = every;
  return config;
}

TEST(CheckpointPolicyTest, StepsThatAreMultiplesAreDue) {
  CheckpointPolicy policy(Config(10, absl::ZeroDuration()), 0, kStart);

  EXPECT_FALSE(policy.Due(9, kStart));
  EXPECT_TRUE(policy.Due(10, kStart));
  EXPECT_FALSE(policy.Due(11, kStart + absl::Hours(9)));
  EXPECT_TRUE(policy.Due(20, kStart));
}

TEST(CheckpointPolicyTest, TimeCountsFromTheLastCheckpoint) {
  CheckpointPolicy policy(Config(0, absl::Seconds(60)), 0, kStart);

  EXPECT_FALSE(policy.Due(5, kStart + absl::Seconds(59)));
  EXPECT_TRUE(policy.Due(5, kStart + absl::Seconds(60)));
  policy.Saved(5, kStart + absl::Seconds(61));

  EXPECT_FALSE(policy.Due(6, kStart + absl::Seconds(120)));
  EXPECT_TRUE(policy.Due(6, kStart + absl::Seconds(121)));
}

TEST(CheckpointPolicyTest, OneThatIsTriedIsNotDueByTimeMeanwhile) {
  CheckpointPolicy policy(Config(10, absl::Seconds(60)), 0, kStart);
  policy.Tried(kStart + absl::Seconds(60));

  EXPECT_FALSE(policy.Due(6, kStart + absl::Seconds(119)));
  EXPECT_TRUE(policy.Due(7, kStart + absl::Seconds(120)));
  EXPECT_TRUE(policy.Due(10, kStart + absl::Seconds(61)));  // by number
}

TEST(CheckpointPolicyTest, WhicheverComesFirst) {
  CheckpointPolicy policy(Config(10, absl::Seconds(60)), 0, kStart);

  EXPECT_TRUE(policy.Due(10, kStart));
  EXPECT_TRUE(policy.Due(3, kStart + absl::Seconds(60)));
  EXPECT_FALSE(policy.Due(3, kStart + absl::Seconds(1)));
}

TEST(CheckpointPolicyTest, FailedCheckpointIsTriedAgainWhenTheNextIsDue) {
  CheckpointPolicy by_time(Config(0, absl::Seconds(60)), 0, kStart);
  by_time.Failed(6, kStart + absl::Seconds(61));
  EXPECT_FALSE(by_time.Due(7, kStart + absl::Seconds(62)));
  EXPECT_TRUE(by_time.Due(8, kStart + absl::Seconds(121)));

  CheckpointPolicy by_steps(Config(10, absl::ZeroDuration()), 0, kStart);
  by_steps.Failed(10, kStart);
  EXPECT_FALSE(by_steps.Due(10, kStart));  // a paused job stays at this step
  EXPECT_FALSE(by_steps.Due(11, kStart));
  EXPECT_TRUE(by_steps.Due(20, kStart));
}

TEST(CheckpointPolicyTest, StepIsSavedOnce) {
  CheckpointPolicy policy(Config(10, absl::Seconds(60)), 0, kStart);
  policy.Saved(10, kStart);

  EXPECT_FALSE(policy.Due(10, kStart + absl::Hours(1)));
  EXPECT_TRUE(policy.Due(20, kStart));
}

TEST(CheckpointPolicyTest, StepResumedFromIsNotSavedAgain) {
  const CheckpointPolicy policy(Config(10, absl::Seconds(1)), 30, kStart);

  EXPECT_FALSE(policy.Due(30, kStart + absl::Hours(1)));
}

TEST(CheckpointPolicyTest, WithoutADirectoryNothingIsDue) {
  CheckpointConfig config = Config(1, absl::Seconds(1));
  config.directory = "";
  const CheckpointPolicy policy(config, 0, kStart);

  EXPECT_FALSE(policy.Due(1, kStart + absl::Hours(1)));
}

TEST(CheckpointPolicyTest, NextDueStepIsTheNextMultiple) {
  const CheckpointPolicy policy(Config(10, absl::ZeroDuration()), 0, kStart);
  const CheckpointPolicy timed(Config(0, absl::Seconds(1)), 0, kStart);

  EXPECT_EQ(policy.NextDueStep(0), 10);
  EXPECT_EQ(policy.NextDueStep(9), 10);
  EXPECT_EQ(policy.NextDueStep(10), 20);
  EXPECT_EQ(timed.NextDueStep(0), std::numeric_limits<int64_t>::max());
}

TEST(CheckpointPolicyTest, WithoutARuleNothingIsDue) {
  const CheckpointPolicy policy(Config(0, absl::ZeroDuration()), 0, kStart);

  EXPECT_FALSE(policy.Due(1000, kStart + absl::Hours(1000)));
}

}  // namespace
}  // namespace lockstep::chief
