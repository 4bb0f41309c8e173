#include "chief/members/membership_table.h"
#include "common/plan/run_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/members/membership_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using State = MembershipTable::State;

const TaskId kStranger{TaskType::kWorker, 2};

class ElasticMembershipTest : public MembershipFixture {};

TEST_F(ElasticMembershipTest, WorkersComeAndGoButNoneUnburied) {
  ASSERT_OK(Register(kWorker0, 1));
  ASSERT_OK(Register(kWorker1, 1));
  ASSERT_OK(
      table_.Leave(kWorker0, 1, LeaveCause::kDone, "done", nullptr, now_));
  const TaskId added{TaskType::kWorker, 7};

  table_.SetWorkers({1, 7});
  EXPECT_THAT(table_.Members(), SizeIs(4));  // worker 0 is to be buried
  EXPECT_OK(Register(added, 1));

  table_.Buried(kWorker0, 1);
  table_.SetWorkers({7});
  EXPECT_THAT(table_.Members(), SizeIs(3));  // worker 1 lives
  EXPECT_THAT(Heartbeat(kWorker0, 1), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ElasticMembershipTest, WorkerThatWasTakenOutRetriesUntilItIsBack) {
  ASSERT_OK(Register(kWorker0, 1));
  ASSERT_OK(
      table_.Leave(kWorker0, 1, LeaveCause::kDone, "done", nullptr, now_));
  table_.Buried(kWorker0, 1);
  table_.SetWorkers({1});
  EXPECT_THAT(Register(kWorker0, 2),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("retry")));
  EXPECT_THAT(Register({TaskType::kWorker, RunSettings::kMaxWorkers}, 2),
              StatusIs(absl::StatusCode::kNotFound));
  table_.SetWorkers({0, 1});
  EXPECT_OK(Register(kWorker0, 2));
}

// Servers admit no incarnation above 5 until one above it is expired.
TEST_F(ElasticMembershipTest, WorkerThatComesBackIsLetInByTheServers) {
  ASSERT_OK(Register(kWorker0, 1));
  ASSERT_OK(Register(kWorker1, 5));
  table_.ShutOutWorkers();  // the job begins
  ASSERT_OK(
      table_.Leave(kWorker1, 5, LeaveCause::kDone, "done", nullptr, now_));
  table_.Buried(kWorker1, 5);
  table_.SetWorkers({0});
  table_.SetWorkers({0, 1});

  EXPECT_THAT(Register(kWorker1, 9), StatusIs(absl::StatusCode::kUnavailable));
  const auto dead = table_.TakeDead(now_);
  ASSERT_THAT(dead, SizeIs(1));
  EXPECT_EQ(dead[0].incarnation, 8u);
  BuryAll();
  EXPECT_OK(Register(kWorker1, 9));
}

// As above, with a chief that was started again meanwhile.
TEST_F(ElasticMembershipTest, StandingOfAWorkerThatIsAwayIsKept) {
  table_.SetWorkers({0, 1});
  const TaskId away{TaskType::kWorker, 7};
  table_.ShutOutWorkers({WorkerStanding{7, 5}}, now_);
  table_.SetWorkers({0, 1, 7});

  EXPECT_THAT(Register(away, 9), StatusIs(absl::StatusCode::kUnavailable));
  BuryAll();
  EXPECT_OK(Register(away, 9));
}

TEST_F(ElasticMembershipTest, UnknownWorkerRetriesAndRegistersOnceAllAreKnown) {
  const TaskId joined{TaskType::kWorker, 7};
  table_.AwaitWorkers();
  EXPECT_THAT(table_.Heartbeat(joined, 1, nullptr, now_),
              StatusIs(absl::StatusCode::kUnavailable));
  table_.SetWorkers({0, 1});
  EXPECT_OK(TakeOver(joined, 1));
  EXPECT_THAT(Heartbeat(joined, 1), StatusIs(absl::StatusCode::kAborted));
  for (const TaskId& none :
       {TaskId{TaskType::kWorker, RunSettings::kMaxWorkers},
        TaskId{TaskType::kPs, 7}}) {
    EXPECT_THAT(Heartbeat(none, 1), StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST_F(ElasticMembershipTest, UnknownWorkersAreTakenOverToHearOfTheEnd) {
  const TaskId joined{TaskType::kWorker, 7};
  table_.AwaitWorkers();
  EXPECT_OK(TakeOver(joined, 1));
  EXPECT_EQ(StateOf(joined), State::kMissing);
  table_.TakeOverAllWorkers();

  EXPECT_OK(TakeOver(joined, 1));
  EXPECT_OK(Heartbeat(joined, 1));
  EXPECT_EQ(StateOf(joined), State::kAlive);
  EXPECT_OK(TakeOver({TaskType::kWorker, RunSettings::kMaxWorkers}, 1));
  EXPECT_THAT(table_.Members(), SizeIs(4));
}

TEST_F(ElasticMembershipTest, StrangersAreNotTakenOverWhereTheWorkersAreKnown) {
  table_.TakeOverAllWorkers();
  EXPECT_OK(TakeOver(kStranger, 1));
  EXPECT_THAT(Heartbeat(kStranger, 1), StatusIs(absl::StatusCode::kNotFound));

  table_.AwaitWorkers();
  table_.SetWorkers({0, 1});
  table_.TakeOverAllWorkers();
  EXPECT_OK(TakeOver(kStranger, 1));
  EXPECT_THAT(Heartbeat(kStranger, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(StateOf(kStranger), State::kMissing);
}

}  // namespace
}  // namespace lockstep::chief
