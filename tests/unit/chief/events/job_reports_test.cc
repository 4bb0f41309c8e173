#include "chief/events/job_reports.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class JobReportsTest : public ::testing::Test {
 protected:
  void Tell(const JobReport& report) { Write(report, status_table_, now_); }
  StatusTable::View View() const { return status_table_.Get(now_); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  StatusTable status_table_;
};

TEST_F(JobReportsTest, EachReportIsInTheStatusTable) {
  Tell(TrainingBegun{3});
  EXPECT_EQ(View().state, JobState::kTraining);
  Tell(StepReached{4});
  EXPECT_EQ(View().global_step, 4);
  Tell(Waits{{{"the job", "ps 1", now_}}});
  EXPECT_EQ(View().waits.at(0).waits_for, "ps 1");
  Tell(SettingsInEffect{{.revision = 2}});
  EXPECT_EQ(View().settings.revision, 2);
  Tell(CheckpointTroubled{"full"});
  EXPECT_EQ(View().checkpoint_trouble, "full");
  Tell(CheckpointSaved{4});
  EXPECT_EQ(View().last_checkpoint_step, 4);
  Tell(ScoreTroubled{"gone"});
  EXPECT_EQ(View().score_trouble, "gone");
  EXPECT_TRUE(status_table_.Evaluated({4, 0.5, 0.8}).ok());
  Tell(WentBack{2});
  EXPECT_EQ(View().global_step, 2);
  EXPECT_FALSE(View().evaluation.has_value());
  Tell(Noticed{"look"});
  EXPECT_EQ(View().notices.at(0).text, "look");
  Tell(StateSaved{true});
  Tell(StateReached{JobState::kStopped, "enough", true});
  EXPECT_EQ(View().state, JobState::kStopped);
  EXPECT_EQ(View().reason, "enough");
  EXPECT_TRUE(View().hold);
  EXPECT_TRUE(View().state_saved);
}

TEST_F(JobReportsTest, AnOlderCheckpointHasTheTimeOfItsWriting) {
  Tell(CheckpointSaved{4, now_ - absl::Minutes(5)});
  EXPECT_EQ(View().last_checkpoint_at, now_ - absl::Minutes(5));
  // By a clock that is ahead.
  Tell(CheckpointSaved{5, now_ + absl::Minutes(5)});
  EXPECT_EQ(View().last_checkpoint_at, now_);
  Tell(CheckpointSaved{6});
  EXPECT_EQ(View().last_checkpoint_at, now_);
}

TEST_F(JobReportsTest, JobThatLostNothingHasNoSummary) {
  Tell(StepReached{4});
  EXPECT_THAT(SummaryOf(View()), IsEmpty());
}

TEST_F(JobReportsTest, SummaryNamesLossesAndDeaths) {
  StatusTable::Losses losses;
  losses.recoveries = 1;
  losses.steps_redone = 2;
  losses.stood_still = absl::Milliseconds(1234);
  Tell(LossesSoFar{losses});
  Tell(ProcessDied{{.task = "ps 1",
                    .reason = "silent for 2s",
                    .held = "its share of step 4",
                    .at = now_}});
  Tell(StepsRedone{"step 5"});
  EXPECT_THAT(
      SummaryOf(View()),
      ElementsAre("in all: servers were away 1 time, 2 steps redone, 0 "
                  "committed steps repeated; the job stood still for 1.23s",
                  "ps 1 died at 01:00:00.000 (silent for 2s); it held its "
                  "share of step 4; redone: step 5; the job stood still for "
                  "0s"));
}

}  // namespace
}  // namespace lockstep::chief
