#include "chief/operators/settings_table.h"

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

class SettingsTableTest : public ::testing::Test {
 protected:
  SettingsTable& Open(const JobConfig& job) {
    settings_table_.emplace(job);
    settings_table_->Open(InitialSettings(job));
    return *settings_table_;
  }

  std::optional<SettingsTable> settings_table_;
};

TEST_F(SettingsTableTest, AChangeIsWantedUnderANewRevision) {
  SettingsTable& settings_table = Open(Job(2, 3));

  EXPECT_THAT(settings_table.Change({.replicas_to_aggregate = 3}),
              IsOkAndHolds(1));
  EXPECT_THAT(settings_table.Change({.learning_rate = 0.125}), IsOkAndHolds(2));

  EXPECT_EQ(settings_table.wanted(),
            (RunSettings{.revision = 2,
                         .replicas_to_aggregate = 3,
                         .learning_rate_scale = 0.25}));
}

TEST_F(SettingsTableTest, RepeatedChangeMakesNoRevision) {
  SettingsTable& settings_table = Open(Job(2, 3));
  ASSERT_THAT(settings_table.Change({.paused = true}), IsOkAndHolds(1));

  EXPECT_THAT(settings_table.Change({.paused = true}), IsOkAndHolds(1));
}

TEST_F(SettingsTableTest, MoreGradientsThanWorkersAreRefusedInStrictMode) {
  SettingsTable& settings_table = Open(Job(2, 3));

  EXPECT_THAT(
      settings_table.Change({.replicas_to_aggregate = 4, .learning_rate = 0.1}),
      StatusIs(kImpossible, HasSubstr("the job has 3 workers")));
  EXPECT_EQ(settings_table.wanted(), InitialSettings(Job(2, 3)));
}

TEST_F(SettingsTableTest, CompatibleModeTakesMoreGradientsThanWorkers) {
  JobConfig job = Job(2, 3);
  job.mode = SyncMode::kCompatible;

  EXPECT_THAT(Open(job).Change({.replicas_to_aggregate = 4}), IsOkAndHolds(1));
}

TEST_F(SettingsTableTest, SharesOfAStepCannotBeChanged) {
  EXPECT_THAT(Open(Job(4, 2)).Change({.replicas_to_aggregate = 2}),
              StatusIs(kImpossible, HasSubstr("know their shares")));
}

TEST_F(SettingsTableTest, SharedStepKeepsItsNumbersWhateverWorkersJoin) {
  JobConfig job = Elastic(8, 2);
  job.work = Work::kShared;
  job.micro_batches_per_step = 8;
  SettingsTable& settings_table = Open(job);

  EXPECT_THAT(settings_table.Change({.replicas_to_aggregate = 2}),
              StatusIs(kImpossible, HasSubstr("work is SHARED")));
  EXPECT_THAT(settings_table.Join(5, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 5));
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 8);
  EXPECT_EQ(settings_table.wanted().revision, 1);
}

TEST_F(SettingsTableTest, RateOfFtrlMustNotRoundToZeroInAnyStep) {
  JobConfig job = Job(2, 3);
  job.train_steps = 100;
  job.learning_rate.schedule = LearningRateConfig::Schedule::kLinear;
  job.learning_rate.minimum = 0.005;  // 1% of the rate
  SettingsTable& others = Open(job);
  EXPECT_THAT(others.Change({.learning_rate = 1e-50}), IsOkAndHolds(1));

  job.variable_optimizers.resize(1);
  job.variable_optimizers[0].variables = "w";
  job.variable_optimizers[0].optimizer.kind = OptimizerConfig::Kind::kFtrl;
  SettingsTable& wide = Open(job);
  EXPECT_THAT(wide.Change({.learning_rate = 1e-50}),
              StatusIs(kImpossible,
                       HasSubstr("variable_optimizers[0].optimizer.kind is "
                                 "FTRL")));
  EXPECT_THAT(wide.Change({.learning_rate = 1e-7}), IsOkAndHolds(1));

  job.model.variable_type = DType::kFloat16;
  SettingsTable& halves = Open(job);
  // At the end of the schedule it would be about 2e-9.
  EXPECT_THAT(halves.Change({.learning_rate = 1e-7}),
              StatusIs(kImpossible, HasSubstr("float16")));
  EXPECT_EQ(halves.wanted(), InitialSettings(job));
  EXPECT_THAT(halves.Change({.learning_rate = 0.01}), IsOkAndHolds(1));
}

TEST_F(SettingsTableTest, ValuesThatNoJobCanHaveAreInvalid) {
  SettingsTable& settings_table = Open(Job(2, 3));

  EXPECT_THAT(settings_table.Change({.replicas_to_aggregate = 0}),
              StatusIs(kInvalid));
  for (double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(settings_table.Change({.learning_rate = rate}),
                StatusIs(kInvalid, HasSubstr("learning_rate")))
        << rate;
  }
}

TEST_F(SettingsTableTest, NothingChangesBeforeTrainingAndAfter) {
  SettingsTable settings_table(Job(2, 3));
  EXPECT_THAT(settings_table.Change({.paused = true}),
              StatusIs(kImpossible, HasSubstr("not begun")));

  settings_table.Open({});
  settings_table.Close("the job is over");

  EXPECT_THAT(settings_table.Change({.paused = true}),
              StatusIs(kImpossible, HasSubstr("the job is over")));
  EXPECT_THAT(settings_table.RequestCheckpoint(), StatusIs(kImpossible));
  EXPECT_FALSE(settings_table.checkpoint_wanted());
}

// A removal is checked with the rest of a change, and waits for a boundary.
TEST_F(SettingsTableTest, ChangeThatIsRefusedRemovesNoWorker) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  EXPECT_THAT(settings_table.Change({.learning_rate = -1, .remove_worker = 1}),
              StatusIs(kInvalid, HasSubstr("learning_rate")));
  EXPECT_FALSE(settings_table.IsToLeave(1));
  EXPECT_THAT(settings_table.Change({.learning_rate = 0.1, .remove_worker = 7}),
              StatusIs(kInvalid, HasSubstr("none of the workers")));
  EXPECT_EQ(settings_table.wanted(), InitialSettings(Elastic(2, 3)));
}

TEST_F(SettingsTableTest, JobThatStopsTakesNoChangesButLetsWorkersGo) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  const RunSettings before = settings_table.wanted();
  settings_table.Stop("enough");
  settings_table.Stop("again");
  EXPECT_THAT(settings_table.Change({.paused = true}),
              StatusIs(kImpossible, HasSubstr("the job is stopping: enough")));
  EXPECT_THAT(settings_table.RequestCheckpoint(), StatusIs(kImpossible));
  EXPECT_EQ(settings_table.wanted(), before);
  // Servers that come back open it once more.
  settings_table.Open(before);
  EXPECT_THAT(settings_table.Change({.paused = true}), StatusIs(kImpossible));
  settings_table.Leave(1);
  EXPECT_EQ(settings_table.wanted().workers.size(), before.workers.size() - 1);
}

TEST_F(SettingsTableTest, ACheckpointIsWantedUntilItIsBegun) {
  SettingsTable& settings_table = Open(Job(2, 3));
  EXPECT_FALSE(settings_table.checkpoint_wanted());

  EXPECT_OK(settings_table.RequestCheckpoint());
  EXPECT_TRUE(settings_table.checkpoint_wanted());

  settings_table.CheckpointBegun();
  EXPECT_FALSE(settings_table.checkpoint_wanted());
}

TEST_F(SettingsTableTest, AJobWithoutADirectoryWritesNoCheckpoint) {
  JobConfig job = Job(2, 3);
  job.checkpoint.directory.clear();

  EXPECT_THAT(Open(job).RequestCheckpoint(),
              StatusIs(kImpossible, HasSubstr("checkpoint.directory")));
}

TEST_F(SettingsTableTest, BackupsStayWhenWorkersJoinAndLeave) {
  SettingsTable& settings_table = Open(Elastic(2, 3));

  EXPECT_THAT(settings_table.Join(5, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 3);

  settings_table.Leave(1);
  settings_table.Leave(2);
  settings_table.Leave(0);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(5));
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 1);

  settings_table.Join(0, /*again=*/false).IgnoreError();
  settings_table.Join(1, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
}

TEST_F(SettingsTableTest, GradientsStayWhenThePolicySaysSo) {
  SettingsTable& settings_table =
      Open(Elastic(2, 3, ElasticPolicy::kFixedReplicasToAggregate));

  settings_table.Join(3, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);

  for (int worker : {0, 1, 2}) settings_table.Leave(worker);
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 1);

  settings_table.Join(4, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
}

TEST_F(SettingsTableTest, AnOperatorChangesWhatThePolicyFixes) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  ASSERT_OK(settings_table.Change({.replicas_to_aggregate = 3}));

  settings_table.Join(3, /*again=*/false).IgnoreError();

  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 4);
}

// All workers would fail, as none has a batch of its share.
TEST_F(SettingsTableTest, NoWorkerJoinsForWhichThereAreTooFewExamples) {
  JobConfig job = Elastic(3, 3);
  job.batch_size = 500;
  SettingsTable& settings_table = Open(job);
  settings_table.KnowExamples(1797);
  settings_table.KnowExamples(0);  // a program that does not count them

  EXPECT_THAT(
      settings_table.Join(3, /*again=*/false),
      StatusIs(kImpossible, HasSubstr("batch_size is 500, but 1797 examples "
                                      "over 4 workers are 449 each")));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));

  // Those of the job may come back, and another one in the place of one.
  EXPECT_THAT(settings_table.Join(2, /*again=*/false), StatusIs(kUnavailable));
  settings_table.Leave(1);
  EXPECT_THAT(settings_table.Join(3, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2, 3));
}

TEST_F(SettingsTableTest, EachReplicaOfAWorkerThatJoinsNeedsABatch) {
  JobConfig job = Elastic(1, 1);
  job.batch_size = 250;
  job.strategy.replicas_per_worker = 2;
  SettingsTable& settings_table = Open(job);
  settings_table.KnowExamples(999);
  EXPECT_THAT(
      settings_table.Join(1, /*again=*/false),
      StatusIs(kImpossible, HasSubstr("2 workers of 2 replicas are 249 each")));
  settings_table.KnowExamples(1000);
  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));
}

TEST_F(SettingsTableTest, WorkersOfSharedWorkNeedNoBatchOfTheirOwn) {
  JobConfig job = Elastic(8, 2);
  job.work = Work::kShared;
  job.batch_size = 16;
  job.micro_batches_per_step = 8;
  SettingsTable& settings_table = Open(job);
  settings_table.KnowExamples(4);
  EXPECT_THAT(settings_table.Join(5, /*again=*/false), StatusIs(kUnavailable));
}

TEST_F(SettingsTableTest, JoinOfAWorkerThatTakesPartChangesNothing) {
  SettingsTable& settings_table = Open(Elastic(2, 3));

  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));

  EXPECT_EQ(settings_table.wanted().revision, 0);
}

TEST_F(SettingsTableTest, AProcessThatWasTakenOutDoesNotJoinAgain) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  settings_table.Leave(1);

  const absl::Status again = settings_table.Join(1, /*again=*/true);

  EXPECT_TRUE(IsHeld(again)) << again;
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));
  EXPECT_THAT(settings_table.Join(1, /*again=*/true), StatusIs(kUnavailable));
}

// The chief that it joined may have lost its memory.
TEST_F(SettingsTableTest, WorkerOfAnEarlierChiefJoinsAgain) {
  SettingsTable& settings_table = Open(Elastic(2, 3));

  EXPECT_THAT(settings_table.Join(4, /*again=*/true), StatusIs(kUnavailable));

  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2, 4));
}

TEST_F(SettingsTableTest, TheLastWorkerStays) {
  SettingsTable& settings_table = Open(Elastic(1, 1));

  EXPECT_THAT(settings_table.Change({.remove_worker = 0}),
              StatusIs(kImpossible, HasSubstr("the last one")));
  settings_table.Leave(0);

  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0));
}

TEST_F(SettingsTableTest, AWorkerIsToLeaveUntilItHasLeft) {
  SettingsTable& settings_table = Open(Elastic(2, 3));

  EXPECT_THAT(settings_table.Change({.remove_worker = 1}), IsOkAndHolds(1));
  EXPECT_TRUE(settings_table.IsToLeave(1));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));

  settings_table.Leave(1);
  EXPECT_FALSE(settings_table.IsToLeave(1));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_EQ(settings_table.wanted().revision, 1);
}

TEST_F(SettingsTableTest, DeadWorkerIsTakenOutOnlyIfAnOperatorHasAsked) {
  SettingsTable& settings_table = Open(Elastic(2, 3));

  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));

  ASSERT_OK(settings_table.Change({.remove_worker = 1}));
  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_EQ(settings_table.wanted().revision, 1);
}

TEST_F(SettingsTableTest, RemovalStaysWantedWhileTheTableIsClosed) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  ASSERT_OK(settings_table.Change({.remove_worker = 1}));
  settings_table.Close("the job is finishing");

  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);

  EXPECT_TRUE(settings_table.IsToLeave(1));
  settings_table.Open(InitialSettings(Elastic(2, 3)));
  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
}

TEST_F(SettingsTableTest, RestartOfAWorkerThatDiedBeforeItsRemovalIsToldOfIt) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  ASSERT_OK(settings_table.Change({.remove_worker = 1}));
  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);

  const absl::Status restarted = settings_table.Join(1, /*again=*/false);

  EXPECT_TRUE(IsHeld(restarted)) << restarted;
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));
}

TEST_F(SettingsTableTest, RemovalMayBeAskedForAgain) {
  SettingsTable& settings_table = Open(Elastic(1, 2));
  ASSERT_THAT(settings_table.Change({.remove_worker = 1}), IsOkAndHolds(1));

  EXPECT_THAT(settings_table.Change({.remove_worker = 1}), IsOkAndHolds(1));
  EXPECT_THAT(settings_table.Change({.remove_worker = 0}),
              StatusIs(kImpossible, HasSubstr("the last one")));
}

TEST_F(SettingsTableTest, NoWorkerJoinsAJobThatIsOver) {
  SettingsTable& settings_table = Open(Elastic(2, 3));
  // The last steps may be lost, and then be made again.
  settings_table.Close("the job is finishing");
  EXPECT_THAT(settings_table.Join(3, /*again=*/false), StatusIs(kUnavailable));

  settings_table.Close("the job is over", /*over=*/true);

  EXPECT_THAT(settings_table.Join(3, /*again=*/false),
              StatusIs(kImpossible, HasSubstr("the job is over")));
}

TEST_F(SettingsTableTest, WorkersOfOtherJobsStayAsTheyAre) {
  SettingsTable& settings_table = Open(Job(2, 3));

  EXPECT_THAT(settings_table.Join(3, /*again=*/false),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("elastic_workers: true")));
  EXPECT_THAT(settings_table.Change({.remove_worker = 1}),
              StatusIs(kImpossible, HasSubstr("elastic_workers: true")));
  EXPECT_THAT(settings_table.wanted().workers, IsEmpty());
}

TEST_F(SettingsTableTest, WorkersOutOfRangeAreRefused) {
  SettingsTable& settings_table = Open(Elastic(2, 3));

  EXPECT_THAT(settings_table.Join(RunSettings::kMaxWorkers, /*again=*/false),
              StatusIs(kInvalid));
  EXPECT_THAT(settings_table.Join(-1, /*again=*/false), StatusIs(kInvalid));
  EXPECT_THAT(settings_table.Change({.remove_worker = 7}),
              StatusIs(kInvalid, HasSubstr("none of the workers 0, 1, 2")));
}

TEST_F(SettingsTableTest, AChiefThatIsStartedAgainKeepsTheFixedNumber) {
  SettingsTable settings_table(Elastic(2, 2));
  settings_table.Open(
      {.revision = 4, .replicas_to_aggregate = 3, .workers = {0, 1, 2, 3, 4}});

  settings_table.Leave(4);

  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
}

// At the end of its range, the number in effect is not the one that was fixed.
TEST_F(SettingsTableTest,
       AChiefThatIsStartedAmongFewWorkersKeepsTheJobsNumber) {
  const RunSettings one_left = {
      .revision = 4, .replicas_to_aggregate = 1, .workers = {5}};
  for (const ElasticPolicy policy :
       {ElasticPolicy::kFixedBackups,
        ElasticPolicy::kFixedReplicasToAggregate}) {
    SettingsTable settings_table(Elastic(2, 3, policy));
    settings_table.Open(one_left);
    for (const int worker : {0, 1}) {
      settings_table.Join(worker, /*again=*/false).IgnoreError();
    }
    EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
  }
}

TEST_F(SettingsTableTest, WithMirrorsAllWorkersCount) {
  JobConfig job = Job(3, 3);
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;

  EXPECT_THAT(Open(job).Change({.replicas_to_aggregate = 2}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("all 3 workers")));
  EXPECT_OK(Open(job).Change({.replicas_to_aggregate = 3}));
}

JobConfig AutoJob() {
  JobConfig job = Job(4, 4);
  job.tune_backups = true;
  return job;
}

TEST_F(SettingsTableTest, ChiefsOwnNumberStaysUnderLaterChanges) {
  SettingsTable& settings_table = Open(AutoJob());
  settings_table.Tune(3);
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 3);
  EXPECT_EQ(settings_table.wanted().revision, 1);
  EXPECT_THAT(settings_table.Change({.learning_rate = 0.125}), IsOkAndHolds(2));
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 3);
}

TEST_F(SettingsTableTest, OperatorsCannotSetWhatTheChiefChooses) {
  EXPECT_THAT(Open(AutoJob()).Change({.replicas_to_aggregate = 3}),
              StatusIs(kImpossible, HasSubstr("AUTO")));
}

TEST_F(SettingsTableTest, TunedBackupsStayWhenAWorkerJoins) {
  JobConfig job = AutoJob();
  job.elastic_workers = true;
  SettingsTable& settings_table = Open(job);
  settings_table.Tune(3);
  settings_table.Join(4, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 4);
}

TEST_F(SettingsTableTest, ClosedTableIsNotTuned) {
  SettingsTable& settings_table = Open(AutoJob());
  settings_table.Close("over");
  settings_table.Tune(3);
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 4);
}

}  // namespace
}  // namespace lockstep::chief
