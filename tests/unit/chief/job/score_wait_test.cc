#include "chief/job/score_wait.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::HasSubstr;
using State = MembershipTable::State;

class ScoreWaitTest : public ::testing::Test {
 protected:
  ScoreWaitTest() {
    evaluator_.task = {TaskType::kEvaluator, 0};
    evaluator_.state = State::kAlive;
  }

  bool IsOver(absl::Duration after) {
    now_ += after;
    return wait_.IsOver(evaluator_, now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  MembershipTable::Member evaluator_;
  ScoreWait wait_{200, now_};
};

TEST_F(ScoreWaitTest, EvaluatorThatWorksMayTakeLong) {
  EXPECT_FALSE(IsOver(absl::Hours(3)));

  EXPECT_EQ(wait_.waits_for(), "evaluator 0 to score step 200");
}

TEST_F(ScoreWaitTest, SaysHowFarTheEvaluatorIs) {
  evaluator_.progress.activity = "scores step 200, 40 %, 12 s to go";

  EXPECT_FALSE(IsOver(absl::ZeroDuration()));

  EXPECT_EQ(
      wait_.waits_for(),
      "evaluator 0 to score step 200 (scores step 200, 40 %, 12 s to go)");
}

TEST_F(ScoreWaitTest, EvaluatorThatCannotScoreIsNotWaitedFor) {
  evaluator_.progress.trouble = "6 classes, not 5";
  evaluator_.progress.cannot_score = true;
  EXPECT_FALSE(IsOver(ScoreWait::kNotices));

  EXPECT_TRUE(IsOver(absl::Milliseconds(1)));

  EXPECT_EQ(wait_.why(), "evaluator 0 cannot score it: 6 classes, not 5");
  EXPECT_THAT(wait_.waits_for(), HasSubstr("(6 classes, not 5)"));
}

TEST_F(ScoreWaitTest, EvaluatorMayHaveScoredAllButTheCheckpointBefore) {
  evaluator_.progress.trouble = "the program has reported no figure of step 90";
  evaluator_.progress.cannot_score = true;
  EXPECT_FALSE(IsOver(absl::Seconds(1)));
  // It has seen the last checkpoint.
  evaluator_.progress = {};

  EXPECT_FALSE(IsOver(absl::Hours(3)));
}

TEST_F(ScoreWaitTest, TroubleMayPassForAWhile) {
  evaluator_.progress.trouble = "a file is missing";
  EXPECT_FALSE(IsOver(absl::Seconds(20)));
  evaluator_.progress.trouble.clear();
  EXPECT_FALSE(IsOver(absl::Seconds(20)));
  evaluator_.progress.trouble = "a file is missing";
  EXPECT_FALSE(IsOver(ScoreWait::kTrouble));

  EXPECT_TRUE(IsOver(absl::Milliseconds(1)));

  EXPECT_THAT(wait_.why(), HasSubstr("a file is missing"));
}

TEST_F(ScoreWaitTest, EvaluatorThatLeftForGoodIsNotWaitedFor) {
  evaluator_.state = State::kLeft;
  evaluator_.leave = LeaveCause::kCannotTakePart;
  evaluator_.leave_reason = "no test set";

  EXPECT_TRUE(IsOver(absl::ZeroDuration()));

  EXPECT_EQ(wait_.why(), "evaluator 0 has left: no test set");
}

TEST_F(ScoreWaitTest, EvaluatorThatWasStoppedOrDiedMayComeBack) {
  evaluator_.state = State::kLeft;
  EXPECT_FALSE(IsOver(ScoreWait::kGone));
  evaluator_.state = State::kAlive;
  EXPECT_FALSE(IsOver(absl::Seconds(1)));
  evaluator_.state = State::kDead;
  EXPECT_FALSE(IsOver(ScoreWait::kGone));

  EXPECT_TRUE(IsOver(absl::Milliseconds(1)));

  EXPECT_EQ(wait_.why(), "evaluator 0 is gone");
}

}  // namespace
}  // namespace lockstep::chief
