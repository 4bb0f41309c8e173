#include "chief/steps/stall_replacement.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

class StallReplacementTest : public ::testing::Test {
 protected:
  void Begin(bool lost = false) {
    replacement_.Begin({/*worker=*/1, lost}, /*step=*/4, /*attempt=*/2, "slow",
                       /*round=*/1, now_, out_);
  }
  std::optional<ShardCalls::Replaced> Answer(
      int server, const absl::StatusOr<ShardCalls::Replaced>& answer) {
    out_.clear();
    return replacement_.OnAnswer({1, server, answer}, out_);
  }

  StallReplacement replacement_{/*num_servers=*/3};
  absl::Time now_ = absl::UnixEpoch();
  JobActions out_;
};

TEST_F(StallReplacementTest, PsZeroDecidesThenAllOthersAreAskedAtOnce) {
  Begin();
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<Replace>(out_[0]).attempt, 2);
  const auto decided = Answer(0, ShardCalls::Replaced{2, 4, 3});
  EXPECT_EQ(decided->attempt, 3);
  ASSERT_EQ(out_.size(), 2U);
  EXPECT_EQ(std::get<Replace>(out_[1]).server, 2);
  EXPECT_EQ(std::get<Replace>(out_[1]).attempt, 3);
}

TEST_F(StallReplacementTest, OneAtATimeAndNotOftenerThanOnceAPause) {
  Begin();
  now_ += 2 * StallReplacement::kPause;
  EXPECT_FALSE(replacement_.MayBegin(now_));
  Answer(0, ShardCalls::Replaced{std::nullopt, 4, 2});
  EXPECT_TRUE(replacement_.MayBegin(now_));
  Begin();
  Answer(0, ShardCalls::Replaced{std::nullopt, 4, 2});
  EXPECT_FALSE(replacement_.MayBegin(now_));
  EXPECT_TRUE(replacement_.MayBegin(now_ + StallReplacement::kPause));
}

TEST_F(StallReplacementTest, LostWorkerIsTriedAgainSoonForABackupThatComes) {
  Begin(/*lost=*/true);
  Answer(0, ShardCalls::Replaced{std::nullopt, 4, 2});

  EXPECT_FALSE(replacement_.MayBegin(now_));
  EXPECT_TRUE(replacement_.MayBegin(now_ + StallReplacement::kPauseAfterLost));
  EXPECT_LT(StallReplacement::kPauseAfterLost, StallReplacement::kPause / 5);
}

TEST_F(StallReplacementTest, OtherServersAreNotCalledIfNoBackupWaits) {
  Begin();
  Answer(0, ShardCalls::Replaced{std::nullopt, 4, 2});
  EXPECT_TRUE(out_.empty());
}

TEST_F(StallReplacementTest, FailureIsSaid) {
  Begin();
  EXPECT_FALSE(Answer(0, absl::UnavailableError("gone")).has_value());
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<Say>(out_[0]).text,
            "worker 1 holds up step 5: ps 0: gone; trying again");
}

TEST_F(StallReplacementTest, AnswersAfterARoundAreOfNoInterest) {
  Begin();
  replacement_.Forget();
  EXPECT_FALSE(Answer(0, ShardCalls::Replaced{2, 4, 3}).has_value());
  EXPECT_TRUE(out_.empty());
}

}  // namespace
}  // namespace lockstep::chief
