#include "worker/loop/loop_end.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

const absl::Status& Full() {
  static const absl::Status full = absl::ResourceExhaustedError("no room");
  return full;
}

JobConfig Job(absl::Duration lease) {
  JobConfig job;
  job.heartbeat_interval = absl::Milliseconds(100);
  job.lease = lease;
  job.max_wait = absl::Minutes(1);
  return job;
}

absl::Duration WaitAfter(const absl::Status& loop, absl::Duration lease) {
  return EndWait(loop, /*no_room=*/false, Job(lease));
}

TEST(LoopEndTest, ChiefAloneTellsTheEndOfTheJob) {
  const auto awaits = [](const absl::Status& loop) {
    return MustAwaitEnd(loop, /*no_room=*/false);
  };
  EXPECT_TRUE(awaits(absl::OkStatus()));
  EXPECT_TRUE(awaits(absl::CancelledError("the membership is over")));
  EXPECT_TRUE(awaits(absl::FailedPreconditionError("refused")));
  EXPECT_FALSE(awaits(absl::OutOfRangeError("end of input")));
  EXPECT_FALSE(awaits(absl::InvalidArgumentError("NaN")));
  EXPECT_FALSE(awaits(Full()));
  EXPECT_TRUE(MustAwaitEnd(Full(), /*no_room=*/true));
}

TEST(LoopEndTest, RefusedWorkerWaitsForTwoLeasesAtMostTheVerdict) {
  const absl::Status refused = absl::FailedPreconditionError("refused");
  EXPECT_EQ(WaitAfter(refused, absl::Seconds(1)), absl::Seconds(2));
  EXPECT_EQ(WaitAfter(refused, absl::Seconds(10)), absl::Seconds(4));
  EXPECT_EQ(WaitAfter(absl::CancelledError("over"), absl::Seconds(1)),
            absl::Minutes(1));
}

TEST(LoopEndTest, FullTableCountsWhenTheNextHeartbeatsStillShowTraining) {
  EXPECT_EQ(EndWait(Full(), /*no_room=*/true, Job(absl::Seconds(10))),
            absl::Milliseconds(200));
  EXPECT_TRUE(MustWaitOn(Full(), /*no_room=*/true, /*job_is_training=*/false));
  EXPECT_FALSE(MustWaitOn(Full(), /*no_room=*/true, /*job_is_training=*/true));
}

TEST(LoopEndTest, WorkerWhoseTokensAreClosedWaitsUntilOthersTrain) {
  const auto waits_on = [](const absl::Status& loop, bool job_is_training) {
    return MustWaitOn(loop, /*no_room=*/false, job_is_training);
  };
  EXPECT_TRUE(waits_on(absl::OkStatus(), /*job_is_training=*/false));
  EXPECT_FALSE(waits_on(absl::OkStatus(), /*job_is_training=*/true));
  EXPECT_FALSE(waits_on(absl::FailedPreconditionError("refused"), false));
}

TEST(LoopEndTest, CauseFollowsFromTheStatus) {
  const auto cause = [](const absl::Status& status) {
    return LeaveCauseOf(status, /*no_room=*/false);
  };
  EXPECT_EQ(cause(absl::OkStatus()), LeaveCause::kDone);
  EXPECT_EQ(cause(absl::CancelledError("")), LeaveCause::kStopped);
  EXPECT_EQ(cause(absl::OutOfRangeError("")), LeaveCause::kEndOfInput);
  const absl::Status exhausted = absl::ResourceExhaustedError("");
  EXPECT_EQ(cause(exhausted), LeaveCause::kCannotTakePart);
  EXPECT_EQ(LeaveCauseOf(exhausted, /*no_room=*/true), LeaveCause::kNoRoom);
}

}  // namespace
}  // namespace lockstep::worker
