#include "chief/backups/push_tuner.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

// Steps of 32 micro-batches, each of which takes 10 ms.
class PushTunerTest : public ::testing::Test {
 protected:
  // Workers make eight more steps, with pushes of so many milliseconds.
  std::optional<PushTuner::Change> Decide(double push_ms, int block,
                                          int workers = 2) {
    for (int worker = 0; worker < workers; ++worker) {
      totals_[worker].micro_batches += 128;
      totals_[worker].computing += 128 * absl::Milliseconds(10);
      totals_[worker].pushes += 128 / block;
      totals_[worker].pushing += 128 / block * absl::Milliseconds(push_ms);
      tuner_.Hear(worker, 1, totals_[worker]);
    }
    step_ += PushTuner::kEverySteps;
    return tuner_.AtBoundary(step_, block, workers);
  }
  int Block(double push_ms, int block, int workers = 2) {
    Decide(push_ms, block, workers);
    const auto change = Decide(push_ms, block, workers);
    return change.has_value() ? change->block : 0;
  }

  PushTuner tuner_{32};
  std::map<int, PushTuner::Totals> totals_;
  int64_t step_ = 0;
};

TEST_F(PushTunerTest, PushesTakeATenthOfComputing) {
  EXPECT_EQ(Block(0.5, 1), 0);
  EXPECT_EQ(Block(3, 1), 4);
}

TEST_F(PushTunerTest, ReasonHasTheTimes) {
  Decide(3.2, 1);
  EXPECT_THAT(Decide(3.2, 1)->why,
              HasSubstr("a push takes 3.2 ms, a micro-batch 10 ms; pushes are "
                        "expected to take 8 % of the time of computing"));
}

TEST_F(PushTunerTest, EachWorkerKeepsTwoBlocksOfAStep) {
  EXPECT_EQ(Block(1000, 1, /*workers=*/1), 16);
  EXPECT_EQ(Block(1000, 16, /*workers=*/1), 0);
  EXPECT_EQ(Block(1000, 1, /*workers=*/2), 8);
  EXPECT_EQ(Block(1000, 1, /*workers=*/5), 2);
  EXPECT_EQ(Block(1000, 1, /*workers=*/17), 0);
}

TEST_F(PushTunerTest, MoreWorkersGetSmallerBlocksAtOnce) {
  EXPECT_EQ(tuner_.AtBoundary(1, 16, 1), std::nullopt);
  const auto change = tuner_.AtBoundary(1, 16, 4);
  ASSERT_NE(change, std::nullopt);
  EXPECT_EQ(change->block, 4);
  EXPECT_THAT(change->why, HasSubstr("each of 4 workers"));
}

TEST_F(PushTunerTest, OneNoisyDecisionChangesNothing) {
  EXPECT_THAT(Decide(50, 1), Eq(std::nullopt));
  EXPECT_THAT(Decide(0.5, 1), Eq(std::nullopt));
  EXPECT_THAT(Decide(50, 1), Eq(std::nullopt));
}

TEST_F(PushTunerTest, TimesNearTheLimitChangeNothing) {
  EXPECT_EQ(Block(1.4, 1), 0);  // 2 would be right, 1 at two thirds of it
  EXPECT_EQ(Block(0.8, 2), 0);  // 1 would be right, 2 at half as much again
  EXPECT_EQ(Block(0.3, 2), 1);
}

TEST_F(PushTunerTest, FewStepsDecideNothing) {
  tuner_.Hear(0, 1, {16, absl::Seconds(1), 16, absl::Seconds(1)});
  EXPECT_THAT(tuner_.AtBoundary(7, 1, 1), Eq(std::nullopt));
  tuner_.Hear(0, 1, {15, absl::Seconds(1), 15, absl::Seconds(1)});
  PushTuner other(32);
  other.Hear(0, 1, {15, absl::Seconds(1), 15, absl::Seconds(1)});
  EXPECT_THAT(other.AtBoundary(100, 1, 1), Eq(std::nullopt));
  EXPECT_THAT(other.AtBoundary(200, 1, 1), Eq(std::nullopt));
}

TEST_F(PushTunerTest, JobThatHasGoneBackIsMeasuredAnew) {
  step_ = 1000;
  Decide(3, 1);
  step_ = 100;
  EXPECT_THAT(Decide(3, 1), Eq(std::nullopt));
  EXPECT_EQ(Block(3, 1), 4);
}

TEST_F(PushTunerTest, NewProcessCountsFromNothing) {
  tuner_.Hear(0, 1, {1000, absl::Seconds(10), 1000, absl::Seconds(3)});
  tuner_.Hear(0, 2, {1000, absl::Seconds(10), 1000, absl::Seconds(3)});
  EXPECT_THAT(tuner_.AtBoundary(8, 1, 2), Eq(std::nullopt));
  tuner_.Hear(0, 2, {2000, absl::Seconds(20), 2000, absl::Seconds(6)});

  EXPECT_EQ(tuner_.AtBoundary(16, 1, 2)->block, 4);
}

}  // namespace
}  // namespace lockstep::chief
