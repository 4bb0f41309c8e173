#include "chief/operators/settings_table.h"

#include <limits>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/operators/settings_table_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::ElasticJobOf;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::JobOf;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kImpossible = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

class SettingsTableTest : public testing::SettingsTableFixture {};

TEST_F(SettingsTableTest, AChangeIsWantedUnderANewRevision) {
  SettingsTable& settings_table = Open(JobOf(2, 3));

  EXPECT_THAT(settings_table.Change({.replicas_to_aggregate = 3}),
              IsOkAndHolds(1));
  EXPECT_THAT(settings_table.Change({.learning_rate = 0.125}), IsOkAndHolds(2));

  EXPECT_EQ(settings_table.wanted(),
            (RunSettings{.revision = 2,
                         .replicas_to_aggregate = 3,
                         .learning_rate_scale = 0.25}));
}

TEST_F(SettingsTableTest, RepeatedChangeMakesNoRevision) {
  SettingsTable& settings_table = Open(JobOf(2, 3));
  ASSERT_THAT(settings_table.Change({.paused = true}), IsOkAndHolds(1));

  EXPECT_THAT(settings_table.Change({.paused = true}), IsOkAndHolds(1));
}

TEST_F(SettingsTableTest, MoreGradientsThanWorkersAreRefusedInStrictMode) {
  SettingsTable& settings_table = Open(JobOf(2, 3));

  EXPECT_THAT(
      settings_table.Change({.replicas_to_aggregate = 4, .learning_rate = 0.1}),
      StatusIs(kImpossible, HasSubstr("the job has 3 workers")));
  EXPECT_EQ(settings_table.wanted(), InitialSettings(JobOf(2, 3)));
}

TEST_F(SettingsTableTest, CompatibleModeTakesMoreGradientsThanWorkers) {
  JobConfig job = JobOf(2, 3);
  job.mode = SyncMode::kCompatible;

  EXPECT_THAT(Open(job).Change({.replicas_to_aggregate = 4}), IsOkAndHolds(1));
}

TEST_F(SettingsTableTest, SharesOfAStepCannotBeChanged) {
  EXPECT_THAT(Open(JobOf(4, 2)).Change({.replicas_to_aggregate = 2}),
              StatusIs(kImpossible, HasSubstr("know their shares")));
}

TEST_F(SettingsTableTest, SharedStepKeepsItsNumbersWhateverWorkersJoin) {
  JobConfig job = ElasticJobOf(8, 2);
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
  JobConfig job = JobOf(2, 3);
  job.train_steps = 100;
  job.learning_rate.schedule = LearningRateConfig::Schedule::kLinear;
  job.learning_rate.minimum = 0.005;  // 1% of the rate
  SettingsTable& others = Open(job);
  EXPECT_THAT(others.Change({.learning_rate = 1e-37}), IsOkAndHolds(1));
  EXPECT_THAT(others.Change({.learning_rate = 1e-50}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("learning_rate is 1e-50, but must be at least "
                                 "1.2e-38")));

  job.variable_optimizers.resize(1);
  job.variable_optimizers[0].variables = "w";
  job.variable_optimizers[0].optimizer.emplace().kind =
      OptimizerConfig::Kind::kFtrl;
  SettingsTable& wide = Open(job);
  EXPECT_THAT(wide.Change({.learning_rate = 1e-37}),
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

// The types of a program's variables are not in the job.
TEST_F(SettingsTableTest, RateMustBeInTheRangeOfEachVariablesType) {
  JobConfig job = JobOf(2, 3);
  job.model.kind = kExternalModel;
  job.variable_optimizers.resize(1);
  job.variable_optimizers[0].variables = "half";
  SettingsTable& settings_table = Open(job);
  const std::vector<VariableSpec> variables = {
      {"w", {2}, DType::kFloat32, {}}, {"half", {2}, DType::kFloat16, {}}};
  EXPECT_THAT(settings_table.Change({.learning_rate = 1e-9}), IsOkAndHolds(1));

  settings_table.KnowVariables(variables);

  EXPECT_THAT(settings_table.Change({.learning_rate = 1e-8}),
              StatusIs(kInvalid, HasSubstr("variables are float16")));
  EXPECT_THAT(settings_table.Change({.learning_rate = 1e-7}), IsOkAndHolds(2));

  job.variable_optimizers[0].optimizer.emplace().kind =
      OptimizerConfig::Kind::kFtrl;
  SettingsTable& ftrl = Open(job);
  ftrl.KnowVariables(variables);
  EXPECT_THAT(ftrl.Change({.learning_rate = 1e-8}),
              StatusIs(kImpossible, HasSubstr("float16")));

  // The rule of variables that are not trained has no rate.
  job.untrained = {"half"};
  job.variable_optimizers.clear();
  SettingsTable& frozen = Open(job);
  frozen.KnowVariables(variables);
  EXPECT_THAT(frozen.Change({.learning_rate = 1e-8}), IsOkAndHolds(1));
}

TEST_F(SettingsTableTest, ValuesThatNoJobCanHaveAreInvalid) {
  SettingsTable& settings_table = Open(JobOf(2, 3));

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
  SettingsTable settings_table(JobOf(2, 3));
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
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
  EXPECT_THAT(settings_table.Change({.learning_rate = -1, .remove_worker = 1}),
              StatusIs(kInvalid, HasSubstr("learning_rate")));
  EXPECT_FALSE(settings_table.IsToLeave(1));
  EXPECT_THAT(settings_table.Change({.learning_rate = 0.1, .remove_worker = 7}),
              StatusIs(kInvalid, HasSubstr("none of the workers")));
  EXPECT_EQ(settings_table.wanted(), InitialSettings(ElasticJobOf(2, 3)));
}

TEST_F(SettingsTableTest, JobThatStopsTakesNoChangesButLetsWorkersGo) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
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
  SettingsTable& settings_table = Open(JobOf(2, 3));
  EXPECT_FALSE(settings_table.checkpoint_wanted());

  EXPECT_OK(settings_table.RequestCheckpoint());
  EXPECT_TRUE(settings_table.checkpoint_wanted());

  settings_table.CheckpointBegun();
  EXPECT_FALSE(settings_table.checkpoint_wanted());
}

TEST_F(SettingsTableTest, AJobWithoutADirectoryWritesNoCheckpoint) {
  JobConfig job = JobOf(2, 3);
  job.checkpoint.directory.clear();

  EXPECT_THAT(Open(job).RequestCheckpoint(),
              StatusIs(kImpossible, HasSubstr("checkpoint.directory")));
}

TEST_F(SettingsTableTest, WithMirrorsAllWorkersCount) {
  JobConfig job = JobOf(3, 3);
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;

  EXPECT_THAT(Open(job).Change({.replicas_to_aggregate = 2}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("all 3 workers")));
  EXPECT_OK(Open(job).Change({.replicas_to_aggregate = 3}));
}

JobConfig AutoJob() {
  JobConfig job = JobOf(4, 4);
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
