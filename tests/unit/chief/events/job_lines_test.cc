#include "chief/events/job_lines.h"

#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JobLinesTest : public ::testing::Test {
 protected:
  // The lines and what was redone, one after the other.
  std::string Said() const {
    std::string text;
    for (const JobAction& action : out_) {
      if (const auto* say = std::get_if<Say>(&action)) text += say->text + ";";
      const auto* report = std::get_if<JobReport>(&action);
      if (report == nullptr) continue;
      if (const auto* redone = std::get_if<StepsRedone>(report)) {
        text += redone->what + ";";
      }
    }
    return text;
  }

  JobActions out_;
};

TEST_F(JobLinesTest, JobThatWasDoneBeforeSaysWhatTrainsOn) {
  SayDoneBefore(10, /*train_steps=*/10, "checkpoints", out_);
  EXPECT_THAT(Said(), AllOf(HasSubstr("step 10 of 10"),
                            HasSubstr("another checkpoint.directory, raise "
                                      "train_steps, or give --fresh"),
                            Not(HasSubstr("--from"))));
  out_.clear();
  SayDoneBefore(12, /*train_steps=*/10, "checkpoints", out_);
  EXPECT_THAT(Said(),
              AllOf(HasSubstr("step 12"), HasSubstr("raise train_steps")));
}

TEST_F(JobLinesTest, GoingBackNamesWhereTo) {
  RecoveryPlan plan;
  plan.step = 4;
  plan.reason = "ps 1 has lost its state";
  plan.repeated_steps = 3;
  SayGoingBack(plan, /*latest=*/4, out_);
  EXPECT_THAT(Said(), AllOf(HasSubstr("ps 1 has lost its state"),
                            HasSubstr("the checkpoint of step 4"),
                            HasSubstr("3 steps")));
  out_.clear();
  SayGoingBack(plan, /*latest=*/9, out_);
  EXPECT_THAT(Said(), HasSubstr("the checkpoint of step 4"));
  out_.clear();
  plan.step = 0;
  SayGoingBack(plan, /*latest=*/0, out_);
  EXPECT_THAT(Said(), HasSubstr("the checkpoint of step 0"));
  out_.clear();
  SayGoingBack(plan, /*latest=*/-1, out_);
  EXPECT_THAT(Said(), HasSubstr("initial values"));
}

TEST_F(JobLinesTest, StepThatServersHoldIsToldWithWhatFollows) {
  SayHeld(4, /*paused=*/false, out_);
  EXPECT_THAT(Said(), AllOf(HasSubstr("hold step 4"), HasSubstr("goes on")));
  out_.clear();
  SayHeld(4, /*paused=*/true, out_);
  EXPECT_THAT(Said(), HasSubstr("lockstep resume"));
}

TEST_F(JobLinesTest, JobThatGoesOnAfterADeathStoodStill) {
  SayGoesOn(4, /*before=*/5, /*epoch=*/3, absl::Milliseconds(1234), out_);
  EXPECT_EQ(Said(),
            "the job goes on from step 4 (it was at 5), epoch 3; it stood "
            "still for 1.23s;");
}

TEST_F(JobLinesTest, ReturnOfAMirrorIsNoDeath) {
  SayTakenBack(4, /*epoch=*/3, absl::Milliseconds(1234), out_);
  EXPECT_EQ(Said(),
            "the job goes on from step 4 with the mirrors that are back, epoch "
            "3; taking them back took 1.23s;");
}

TEST_F(JobLinesTest, RedoneAreLostStepsOrElseTheOneAtHand) {
  SayRedone(3, /*before=*/5, /*redone=*/true, out_);
  SayRedone(5, /*before=*/5, /*redone=*/true, out_);
  SayRedone(5, /*before=*/5, /*redone=*/false, out_);
  EXPECT_EQ(Said(), "committed steps 4 to 5;step 6;");
}

}  // namespace
}  // namespace lockstep::chief
