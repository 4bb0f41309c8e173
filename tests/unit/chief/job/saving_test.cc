#include "chief/job/saving.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using Turn = Saving::Turn;

class SavingTest : public ::testing::Test {
 protected:
  SavingTest() {
    steps_.Open(7, 1, steps_.servers());
    checkpoints_.Begin(0, -1, context_.now);
  }
  Turn Close(const absl::Status& status) {
    return saving_.OnTokensClosed({1, status});
  }

  JobConfig job_ = [] {
    JobConfig job;
    job.replicas_to_aggregate = job.total_num_replicas = 1;
    return job;
  }();
  MembershipTable members_{{}, absl::Seconds(2)};
  JobContext context_{job_, members_, absl::UnixEpoch() + absl::Hours(1)};
  StepDriver steps_{job_, 1};
  CheckpointDriver checkpoints_{job_};
  MemberDeaths deaths_{context_, steps_};
  Saving saving_{context_, steps_, checkpoints_, deaths_};
};

TEST_F(SavingTest, ResultIsThatOfTrainingOnceTheStepIsSaved) {
  saving_.Begin(absl::CancelledError("enough"));
  EXPECT_TRUE(saving_.begun());
  EXPECT_EQ(Close(absl::OkStatus()), Turn::kEnded);
  EXPECT_EQ(saving_.result(), absl::CancelledError("enough"));
}

TEST_F(SavingTest, PassingFailureNeedsTheServersAfterAPause) {
  saving_.Begin(absl::OkStatus());
  EXPECT_EQ(Close(absl::UnavailableError("x")), Turn::kGoesOn);
  context_.now += absl::Milliseconds(100);
  EXPECT_EQ(saving_.OnTick(), Turn::kServerAway);
}

TEST_F(SavingTest, ServerAtAnotherStepIsAskedWhereItIs) {
  saving_.Begin(absl::OkStatus());
  EXPECT_EQ(Close(absl::FailedPreconditionError("at step 9")), Turn::kGoesOn);
  context_.now += absl::Milliseconds(100);
  EXPECT_EQ(saving_.OnTick(), Turn::kServerAway);
}

TEST_F(SavingTest, NewerChiefIsGivenWayTo) {
  saving_.Begin(absl::OkStatus());
  EXPECT_EQ(Close(absl::AbortedError("x")), Turn::kReplaced);
}

TEST_F(SavingTest, StepThatTheNextOneHasOverwrittenIsGivenUpAtOnce) {
  job_.mode = SyncMode::kCompatible;
  job_.checkpoint.directory = "/checkpoints";
  saving_.Begin(absl::CancelledError("enough"));
  EXPECT_EQ(Close(absl::OkStatus()), Turn::kGoesOn);
  ASSERT_TRUE(saving_.writes());
  checkpoints_.OnBegun({7, absl::DataLossError("ps 0: step 7 is gone")},
                       /*quiet=*/true, context_.now, context_.out);

  EXPECT_EQ(saving_.OnCheckpoint(), Turn::kEnded);

  EXPECT_EQ(saving_.result(),
            absl::DataLossError(
                "the last checkpoint could not be written: ps 0: step 7 is "
                "gone; the job goes on from the checkpoint before when it is "
                "started again"));
}

TEST_F(SavingTest, LostStepsAreSeen) {
  saving_.Begin(absl::OkStatus());
  EXPECT_FALSE(saving_.HasLostSteps());
  steps_.Open(6, 1, steps_.servers());
  EXPECT_TRUE(saving_.HasLostSteps());
}

TEST_F(SavingTest, FailureThatASaveMayMakeWorseIsNotSaved) {
  job_.checkpoint.directory = "/checkpoints";
  EXPECT_EQ(saving_.BeginFailing(absl::InternalError("NaN")), Turn::kEnded);
  EXPECT_EQ(saving_.result(), absl::InternalError("NaN"));
}

TEST_F(SavingTest, FailureOfTheAttemptBeforeAFailureChangesNothing) {
  job_.checkpoint.directory = "/checkpoints";
  EXPECT_EQ(saving_.BeginFailing(absl::ResourceExhaustedError("full")),
            Turn::kGoesOn);
  EXPECT_EQ(Close(absl::UnavailableError("x")), Turn::kEnded);
  EXPECT_EQ(saving_.result(), absl::ResourceExhaustedError("full"));
}

}  // namespace
}  // namespace lockstep::chief
