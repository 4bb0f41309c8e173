#include "chief/job/gathering.h"

#include "chief/job/job_context.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using Turn = Gathering::Turn;

class GatheringTest : public ::testing::Test {
 protected:
  const TaskId ps_{TaskType::kPs, 0};
  const TaskId worker_{TaskType::kWorker, 0};
  JobConfig job_;
  MembershipTable members_{{ps_, worker_}, absl::Seconds(2)};
  JobContext context_{job_, members_, absl::UnixEpoch() + absl::Hours(1)};
  Gathering gathering_{context_};
};

TEST_F(GatheringTest, NeedsAllServersAndAModel) {
  EXPECT_EQ(gathering_.Look(), Turn::kWaits);
  gathering_.ModelDescribed();
  EXPECT_EQ(gathering_.Look(), Turn::kWaits);
  ASSERT_OK(members_.Register(ps_, 1, context_.now));
  EXPECT_EQ(gathering_.Look(), Turn::kAllThere);
}

TEST_F(GatheringTest, StopEndsIt) {
  context_.WantStop(StoppedStatus("enough", false));
  EXPECT_EQ(gathering_.Look(), Turn::kEnded);
  EXPECT_THAT(gathering_.result(),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
}

TEST_F(GatheringTest, WorkerThatCannotTakePartEndsIt) {
  ASSERT_OK(members_.Register(worker_, 1, context_.now));
  ASSERT_OK(members_.Leave(worker_, 1, LeaveCause::kCannotTakePart, "no data",
                           nullptr, context_.now));
  EXPECT_EQ(gathering_.Look(), Turn::kEnded);
  EXPECT_THAT(gathering_.result(),
              StatusIs(absl::StatusCode::kAborted, "worker 0 left: no data"));
}

TEST_F(GatheringTest, DeadMembersAreBuriedAtOnce) {
  ASSERT_OK(members_.Register(worker_, 1, context_.now));
  context_.now += absl::Seconds(3);
  EXPECT_EQ(gathering_.Look(), Turn::kWaits);
  EXPECT_OK(members_.Register(worker_, 2, context_.now));
}

TEST_F(GatheringTest, EndOfAWorkersInputIsLeftForTheServersToBeTold) {
  ASSERT_OK(members_.Register(worker_, 1, context_.now));
  members_
      .Leave(worker_, 1, LeaveCause::kEndOfInput, "end", nullptr, context_.now)
      .IgnoreError();
  EXPECT_EQ(gathering_.Look(), Turn::kWaits);
  EXPECT_EQ(members_.TakeDead(context_.now).size(), 1u);
}

}  // namespace
}  // namespace lockstep::chief
