#include "chief/job/stand_still.h"

#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A job of one server, whose step 5 began a second ago.
class StandStillTest : public ::testing::Test {
 protected:
  StandStillTest() {
    steps_.Open(5, /*replicas_to_aggregate=*/1, {0});
    steps_.RestartTime(context_.now);
    context_.now += absl::Seconds(1);
  }

  void Begin() { stand_still_.Begin(context_, steps_); }
  // The job goes on from `step`, two seconds later.
  void Report(int64_t step, bool taken_back = false) {
    context_.now += absl::Seconds(2);
    stand_still_.Report(step, /*epoch=*/9, taken_back, context_);
  }
  // The lines and what was redone, one after the other.
  std::string Said() const {
    std::string text;
    for (const JobAction& action : context_.out) {
      if (const auto* say = std::get_if<Say>(&action)) text += say->text + ";";
      const auto* report = std::get_if<JobReport>(&action);
      if (report == nullptr) continue;
      if (const auto* redone = std::get_if<StepsRedone>(report)) {
        text += "redone: " + redone->what + ";";
      }
    }
    return text;
  }

  JobConfig job_;
  MembershipTable members_{{}, absl::Seconds(2)};
  JobContext context_{job_, members_, absl::UnixEpoch() + absl::Hours(1)};
  StepDriver steps_{job_, 1};
  StandStill stand_still_;
};

TEST_F(StandStillTest, TimeOfTheStepAtHandIsLost) {
  Begin();
  Report(5);

  EXPECT_EQ(context_.losses.stood_still, absl::Seconds(3));
  EXPECT_EQ(context_.losses.recoveries, 1);
  EXPECT_EQ(context_.reached, 5);
  EXPECT_THAT(Said(),
              AllOf(HasSubstr("goes on from step 5"),
                    HasSubstr("stood still for 3s"), Not(HasSubstr("redone"))));
}

TEST_F(StandStillTest, PausedJobLosesTimeOnlyWhileAServerIsAway) {
  RunSettings paused = context_.settings.now();
  paused.paused = true;
  context_.settings.Want(paused);
  context_.settings.Apply();

  Begin();
  Report(5);

  EXPECT_EQ(context_.losses.stood_still, absl::Seconds(2));
}

TEST_F(StandStillTest, ChangeOfSettingsLosesTimeOnlyWhileAServerIsAway) {
  stand_still_.Begin(context_, steps_, /*for_operator=*/true);
  context_.now += absl::Seconds(10);
  stand_still_.ServerAway(context_.now);
  context_.now += absl::Seconds(1);
  stand_still_.ServerAway(context_.now);  // another one
  context_.now += absl::Seconds(2);
  stand_still_.ReportChange(5, /*epoch=*/9, context_);

  EXPECT_EQ(context_.losses.stood_still, absl::Seconds(3));
  EXPECT_EQ(context_.losses.recoveries, 1);

  stand_still_.Begin(context_, steps_, /*for_operator=*/true);
  stand_still_.ReportChange(5, /*epoch=*/10, context_);
  EXPECT_EQ(context_.losses.recoveries, 1);
}

TEST_F(StandStillTest, ChangeOfSettingsThatLosesStepsIsARecovery) {
  stand_still_.Begin(context_, steps_, /*for_operator=*/true);
  stand_still_.Found(3, /*repeated=*/0, context_);
  stand_still_.ReportChange(3, /*epoch=*/9, context_);

  EXPECT_EQ(context_.losses.recoveries, 1);
  EXPECT_THAT(Said(), HasSubstr("redone: committed steps 4 to 5"));
}

TEST_F(StandStillTest, LostStepsAreMadeAgain) {
  Begin();
  stand_still_.Found(3, /*repeated=*/0, context_);
  Report(3);

  EXPECT_EQ(context_.losses.steps_repeated, 2);
  EXPECT_THAT(Said(), HasSubstr("redone: committed steps 4 to 5"));
}

// As servers may have committed more than the chief has heard of.
TEST_F(StandStillTest, PlanMayKnowOfMoreStepsThanTheChief) {
  Begin();
  stand_still_.Found(4, /*repeated=*/3, context_);

  EXPECT_EQ(context_.losses.steps_repeated, 3);
}

TEST_F(StandStillTest, StepThatBeginsAnewIsReported) {
  Begin();
  context_.CountRedone(5);
  Report(5);

  EXPECT_THAT(Said(), HasSubstr("redone: step 6"));
}

TEST_F(StandStillTest, MirrorsThatAreTakenBackAreNoRecovery) {
  Begin();
  Report(5, /*taken_back=*/true);

  EXPECT_EQ(context_.losses.recoveries, 0);
  EXPECT_EQ(context_.losses.stood_still, absl::ZeroDuration());
  EXPECT_THAT(Said(), HasSubstr("mirrors that are back"));
}

}  // namespace
}  // namespace lockstep::chief
