#include "chief/job/member_deaths.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;

class MemberDeathsTest : public ::testing::Test {
 protected:
  MemberDeathsTest() {
    for (const TaskId& task : {ps_, worker_}) {
      EXPECT_OK(members_.Register(task, 1, context_.now));
    }
  }
  void Leave(const TaskId& task, LeaveCause cause) {
    const absl::Status left =
        members_.Leave(task, 1, cause, "bye", nullptr, context_.now);
    // That one is repeated until servers know.
    ASSERT_EQ(left.ok(), cause != LeaveCause::kEndOfInput) << left;
  }

  const TaskId ps_{TaskType::kPs, 0};
  const TaskId worker_{TaskType::kWorker, 0};
  JobConfig job_ = [] {
    JobConfig job;
    job.replicas_to_aggregate = job.total_num_replicas = 1;
    return job;
  }();
  MembershipTable members_{{ps_, worker_}, absl::Seconds(2)};
  JobContext context_{job_, members_, absl::UnixEpoch() + absl::Hours(1)};
  StepDriver steps_{job_, 1};
  MemberDeaths deaths_{context_, steps_};
};

TEST_F(MemberDeathsTest, SilentServerIsAway) {
  context_.now += absl::Seconds(3);
  EXPECT_TRUE(deaths_.BuryBeforeRound().ok());
  EXPECT_TRUE(deaths_.server_away());
  EXPECT_TRUE(deaths_.TakeServerAway());
  EXPECT_FALSE(deaths_.TakeServerAway());
}

TEST_F(MemberDeathsTest, WorkersWaitWhileServersAreNotTogether) {
  context_.now += absl::Seconds(3);
  EXPECT_TRUE(deaths_.BuryBeforeRound().ok());
  EXPECT_EQ(members_.TakeDead(context_.now).size(), 1U);
}

TEST_F(MemberDeathsTest, ServerThatLeavesStopsTheJob) {
  Leave(ps_, LeaveCause::kStopped);
  EXPECT_OK(deaths_.BuryAll());
  EXPECT_THAT(context_.Stop(),
              StatusIs(absl::StatusCode::kCancelled, "ps 0 left: bye"));
  EXPECT_FALSE(deaths_.server_away());
}

TEST_F(MemberDeathsTest, FullTableFailsTheJob) {
  Leave(worker_, LeaveCause::kNoRoom);
  EXPECT_THAT(deaths_.BuryAll(), StatusIs(absl::StatusCode::kResourceExhausted,
                                          "worker 0 left: bye"));
}

TEST_F(MemberDeathsTest, EndedInputCountsOnceTheWorkerIsBuried) {
  Leave(worker_, LeaveCause::kEndOfInput);
  EXPECT_OK(deaths_.BuryAll());
  EXPECT_FALSE(deaths_.InputEnded());
  EXPECT_OK(deaths_.OnExpireAnswered({0, 0, 0, ShardCalls::Expired{}}, false));
  EXPECT_TRUE(deaths_.InputEnded());
}

}  // namespace
}  // namespace lockstep::chief
