#include "chief/operators/steering_desk.h"

#include <limits>
#include <optional>
#include <vector>

#include "common/base/stop_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kImpossible = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

JobConfig Job(int replicas, int workers) {
  JobConfig job;
  job.replicas_to_aggregate = replicas;
  job.total_num_replicas = workers;
  job.learning_rate.base = 0.5;
  job.checkpoint.directory = "/checkpoints";
  return job;
}

JobConfig Elastic(int replicas, int workers,
                  ElasticPolicy policy = ElasticPolicy::kFixedBackups) {
  JobConfig job = Job(replicas, workers);
  job.elastic_workers = true;
  job.elastic_policy = policy;
  return job;
}

class SteeringDeskTest : public ::testing::Test {
 protected:
  SteeringDesk& Open(const JobConfig& job) {
    desk_.emplace(job);
    desk_->Open(InitialSettings(job));
    return *desk_;
  }

  std::optional<SteeringDesk> desk_;
};

TEST_F(SteeringDeskTest, AChangeIsWantedUnderANewRevision) {
  SteeringDesk& desk = Open(Job(2, 3));

  EXPECT_THAT(desk.Change({.replicas_to_aggregate = 3}), IsOkAndHolds(1));
  EXPECT_THAT(desk.Change({.learning_rate = 0.125}), IsOkAndHolds(2));

  EXPECT_EQ(desk.wanted(), (RunSettings{.revision = 2,
                                        .replicas_to_aggregate = 3,
                                        .learning_rate_scale = 0.25}));
}

TEST_F(SteeringDeskTest, WhatIsSoAlreadyIsNoChange) {
  SteeringDesk& desk = Open(Job(2, 3));
  ASSERT_THAT(desk.Change({.paused = true}), IsOkAndHolds(1));

  EXPECT_THAT(desk.Change({.paused = true}), IsOkAndHolds(1));
}

TEST_F(SteeringDeskTest, MoreGradientsThanWorkersAreRefusedInStrictMode) {
  SteeringDesk& desk = Open(Job(2, 3));

  EXPECT_THAT(desk.Change({.replicas_to_aggregate = 4, .learning_rate = 0.1}),
              StatusIs(kImpossible, HasSubstr("the job has 3 workers")));
  EXPECT_EQ(desk.wanted().revision, 0);
}

TEST_F(SteeringDeskTest, MoreGradientsThanWorkersAreFineInCompatibleMode) {
  JobConfig job = Job(2, 3);
  job.mode = SyncMode::kCompatible;

  EXPECT_THAT(Open(job).Change({.replicas_to_aggregate = 4}), IsOkAndHolds(1));
}

TEST_F(SteeringDeskTest, SharesOfAStepCannotBeChanged) {
  EXPECT_THAT(Open(Job(4, 2)).Change({.replicas_to_aggregate = 2}),
              StatusIs(kImpossible, HasSubstr("know their shares")));
}

TEST_F(SteeringDeskTest, ValuesThatNoJobCanHaveAreInvalid) {
  SteeringDesk& desk = Open(Job(2, 3));

  EXPECT_THAT(desk.Change({.replicas_to_aggregate = 0}), StatusIs(kInvalid));
  for (double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(desk.Change({.learning_rate = rate}),
                StatusIs(kInvalid, HasSubstr("learning_rate")))
        << rate;
  }
}

TEST_F(SteeringDeskTest, NothingChangesBeforeTrainingAndAfter) {
  SteeringDesk desk(Job(2, 3));
  EXPECT_THAT(desk.Change({.paused = true}),
              StatusIs(kImpossible, HasSubstr("not begun")));

  desk.Open({});
  desk.Close("the job is over");

  EXPECT_THAT(desk.Change({.paused = true}),
              StatusIs(kImpossible, HasSubstr("the job is over")));
  EXPECT_THAT(desk.RequestCheckpoint(), StatusIs(kImpossible));
}

TEST_F(SteeringDeskTest, ACheckpointIsWantedUntilItIsBegun) {
  SteeringDesk& desk = Open(Job(2, 3));
  EXPECT_FALSE(desk.checkpoint_wanted());

  EXPECT_OK(desk.RequestCheckpoint());
  EXPECT_TRUE(desk.checkpoint_wanted());

  desk.CheckpointBegun();
  EXPECT_FALSE(desk.checkpoint_wanted());
}

TEST_F(SteeringDeskTest, AJobWithoutADirectoryWritesNoCheckpoint) {
  JobConfig job = Job(2, 3);
  job.checkpoint.directory.clear();

  EXPECT_THAT(Open(job).RequestCheckpoint(),
              StatusIs(kImpossible, HasSubstr("checkpoint.directory")));
}

TEST_F(SteeringDeskTest, BackupsStayWhenWorkersJoinAndLeave) {
  SteeringDesk& desk = Open(Elastic(2, 3));

  EXPECT_THAT(desk.Join(5, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(desk.wanted().workers, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 3);

  desk.Leave(1);
  desk.Leave(2);
  desk.Leave(0);
  EXPECT_THAT(desk.wanted().workers, ElementsAre(5));
  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 1);

  desk.Join(0, /*again=*/false).IgnoreError();
  desk.Join(1, /*again=*/false).IgnoreError();
  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 2);
}

TEST_F(SteeringDeskTest, GradientsStayWhenThePolicySaysSo) {
  SteeringDesk& desk =
      Open(Elastic(2, 3, ElasticPolicy::kFixedReplicasToAggregate));

  desk.Join(3, /*again=*/false).IgnoreError();
  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 2);

  for (int worker : {0, 1, 2}) desk.Leave(worker);
  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 1);

  desk.Join(4, /*again=*/false).IgnoreError();
  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 2);
}

TEST_F(SteeringDeskTest, AnOperatorChangesWhatThePolicyFixes) {
  SteeringDesk& desk = Open(Elastic(2, 3));
  ASSERT_OK(desk.Change({.replicas_to_aggregate = 3}));

  desk.Join(3, /*again=*/false).IgnoreError();

  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 4);
}

TEST_F(SteeringDeskTest, WhoJoinsAgainChangesNothing) {
  SteeringDesk& desk = Open(Elastic(2, 3));

  EXPECT_THAT(desk.Join(1, /*again=*/false), StatusIs(kUnavailable));

  EXPECT_EQ(desk.wanted().revision, 0);
}

TEST_F(SteeringDeskTest, AProcessThatWasTakenOutDoesNotJoinAgain) {
  SteeringDesk& desk = Open(Elastic(2, 3));
  desk.Leave(1);

  const absl::Status again = desk.Join(1, /*again=*/true);

  EXPECT_TRUE(IsHeld(again)) << again;
  EXPECT_THAT(desk.wanted().workers, ElementsAre(0, 2));
  EXPECT_THAT(desk.Join(1, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(desk.wanted().workers, ElementsAre(0, 1, 2));
  EXPECT_THAT(desk.Join(1, /*again=*/true), StatusIs(kUnavailable));
}

// The chief that it joined may have lost its memory.
TEST_F(SteeringDeskTest, WorkerOfAnEarlierChiefJoinsAgain) {
  SteeringDesk& desk = Open(Elastic(2, 3));

  EXPECT_THAT(desk.Join(4, /*again=*/true), StatusIs(kUnavailable));

  EXPECT_THAT(desk.wanted().workers, ElementsAre(0, 1, 2, 4));
}

TEST_F(SteeringDeskTest, TheLastWorkerStays) {
  SteeringDesk& desk = Open(Elastic(1, 1));

  EXPECT_THAT(desk.Change({.remove_worker = 0}),
              StatusIs(kImpossible, HasSubstr("the last one")));
  desk.Leave(0);

  EXPECT_THAT(desk.wanted().workers, ElementsAre(0));
}

TEST_F(SteeringDeskTest, AWorkerIsToLeaveUntilItHasLeft) {
  SteeringDesk& desk = Open(Elastic(2, 3));

  EXPECT_THAT(desk.Change({.remove_worker = 1}), IsOkAndHolds(1));
  EXPECT_TRUE(desk.IsToLeave(1));
  EXPECT_THAT(desk.wanted().workers, ElementsAre(0, 1, 2));

  desk.Leave(1);
  EXPECT_FALSE(desk.IsToLeave(1));
  EXPECT_THAT(desk.wanted().workers, ElementsAre(0, 2));
  EXPECT_EQ(desk.wanted().revision, 1);
}

TEST_F(SteeringDeskTest, WorkersOfOtherJobsStayAsTheyAre) {
  SteeringDesk& desk = Open(Job(2, 3));

  EXPECT_THAT(desk.Join(3, /*again=*/false),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("elastic_workers: true")));
  EXPECT_THAT(desk.Change({.remove_worker = 1}),
              StatusIs(kImpossible, HasSubstr("elastic_workers: true")));
  EXPECT_THAT(desk.wanted().workers, IsEmpty());
}

TEST_F(SteeringDeskTest, WorkersOutOfRangeAreRefused) {
  SteeringDesk& desk = Open(Elastic(2, 3));

  EXPECT_THAT(desk.Join(RunSettings::kMaxWorkers, /*again=*/false),
              StatusIs(kInvalid));
  EXPECT_THAT(desk.Join(-1, /*again=*/false), StatusIs(kInvalid));
  EXPECT_THAT(desk.Change({.remove_worker = 7}),
              StatusIs(kInvalid, HasSubstr("none of the workers 0, 1, 2")));
}

TEST_F(SteeringDeskTest, AChiefThatIsStartedAgainKeepsTheFixedNumber) {
  SteeringDesk desk(Elastic(2, 2));
  desk.Open(
      {.revision = 4, .replicas_to_aggregate = 3, .workers = {0, 1, 2, 3, 4}});

  desk.Leave(4);

  EXPECT_EQ(desk.wanted().replicas_to_aggregate, 2);
}

TEST(DescribeChangeTest, NamesWhatIsDifferent) {
  const JobConfig job = Elastic(2, 3);
  RunSettings to = InitialSettings(job);
  to.replicas_to_aggregate = 1;
  to.learning_rate_scale = 0.5;
  to.paused = true;
  to.workers = {0, 2};

  EXPECT_EQ(DescribeChange(job, InitialSettings(job), to),
            "replicas_to_aggregate 2 -> 1, learning_rate 0.5 -> 0.25, paused, "
            "workers 0 1 2 -> 0 2");
  EXPECT_EQ(DescribeChange(job, to, to), "");
}

}  // namespace
}  // namespace lockstep::chief
