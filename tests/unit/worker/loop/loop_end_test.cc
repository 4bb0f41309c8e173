#include "worker/loop/loop_end.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(LoopEndTest, ChiefAloneTellsTheEndOfTheJob) {
  EXPECT_TRUE(MustAwaitEnd(absl::OkStatus()));
  EXPECT_TRUE(MustAwaitEnd(absl::CancelledError("the membership is over")));
  EXPECT_TRUE(MustAwaitEnd(absl::FailedPreconditionError("refused")));
  EXPECT_FALSE(MustAwaitEnd(absl::OutOfRangeError("end of input")));
  EXPECT_FALSE(MustAwaitEnd(absl::InvalidArgumentError("NaN")));
}

TEST(LoopEndTest, RefusedWorkerWaitsForTwoLeasesAtMostTheVerdict) {
  const absl::Status refused = absl::FailedPreconditionError("refused");
  const absl::Duration max_wait = absl::Minutes(1);
  EXPECT_EQ(EndWait(refused, absl::Seconds(1), max_wait), absl::Seconds(2));
  EXPECT_EQ(EndWait(refused, absl::Seconds(10), max_wait), absl::Seconds(4));
  EXPECT_EQ(EndWait(absl::CancelledError("over"), absl::Seconds(1), max_wait),
            max_wait);
}

TEST(LoopEndTest, WorkerWhoseTokensAreClosedWaitsUntilOthersTrain) {
  EXPECT_TRUE(MustWaitOn(absl::OkStatus(), /*job_is_training=*/false));
  EXPECT_FALSE(MustWaitOn(absl::OkStatus(), /*job_is_training=*/true));
  EXPECT_FALSE(MustWaitOn(absl::FailedPreconditionError("refused"), false));
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
