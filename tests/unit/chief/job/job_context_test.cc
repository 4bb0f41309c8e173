#include "chief/job/job_context.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

// Each member that an elastic job loses begins the same step anew.
TEST(JobContextTest, AStepThatBeginsAnewTwiceCountsOnce) {
  const JobConfig job;
  MembershipTable members({}, absl::Seconds(2));
  JobContext context(job, members, absl::UnixEpoch());

  context.NoteRedone(7);
  context.NoteRedone(7);
  EXPECT_EQ(context.losses.steps_redone, 1);
  EXPECT_EQ(context.out.size(), 1u);

  EXPECT_FALSE(context.CountRedone(7));
  EXPECT_TRUE(context.CountRedone(8));
  context.NoteRedone(7);  // servers have lost step 8
  EXPECT_EQ(context.losses.steps_redone, 3);
}

TEST(RecordStopTest, StopThatHoldsStaysUnderLaterOnes) {
  std::optional<absl::Status> stop;
  RecordStop(StoppedStatus("enough", /*hold=*/false), stop);
  RecordStop(StoppedStatus("for good", /*hold=*/true), stop);
  RecordStop(StoppedStatus("SIGTERM", /*hold=*/false), stop);
  EXPECT_EQ(stop, StoppedStatus("for good", /*hold=*/true));
}

}  // namespace
}  // namespace lockstep::chief
