#include "chief/traces/job_limits.h"

#include "common/job/work_checks.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

TEST(JobLimitsTest, AStrictJobWithServersRulesNothingOut) {
  const RemedyLimits limits = LimitsOf({});
  EXPECT_FALSE(limits.no_backups);
  EXPECT_FALSE(limits.chief_sets_backups);
  EXPECT_FALSE(limits.no_servers);
  EXPECT_FALSE(limits.no_bfloat16);
  EXPECT_FALSE(limits.no_shared_memory);
  EXPECT_FALSE(limits.no_larger_pushes);
}

TEST(JobLimitsTest, CompatibleModeTakesBackupsAndSendsGradientsAsTheyAre) {
  JobConfig job;
  job.mode = SyncMode::kCompatible;
  EXPECT_FALSE(LimitsOf(job).no_backups);
  EXPECT_TRUE(LimitsOf(job).no_bfloat16);
  EXPECT_TRUE(LimitsOf(job).no_shared_memory);
}

TEST(JobLimitsTest, MirrorsHaveNeitherBackupsNorServers) {
  for (const StrategyKind kind :
       {StrategyKind::kOneDevice, StrategyKind::kMirrored,
        StrategyKind::kMultiWorkerMirrored}) {
    JobConfig job;
    job.strategy.kind = kind;
    EXPECT_TRUE(LimitsOf(job).no_backups);
    EXPECT_TRUE(LimitsOf(job).no_servers);
    EXPECT_EQ(LimitsOf(job).no_bfloat16,
              kind != StrategyKind::kMultiWorkerMirrored);
  }
}

TEST(JobLimitsTest, SharedStepsHaveNoBackups) {
  JobConfig job;
  job.work = Work::kShared;
  EXPECT_TRUE(LimitsOf(job).no_backups);
  EXPECT_TRUE(LimitsOf(job).no_shared_memory);
  EXPECT_FALSE(LimitsOf(job).no_servers);
}

TEST(JobLimitsTest, ChecksRefuseLargerPushesWhereTheyAreRuledOut) {
  for (const DType type :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const GradientType wire :
         {GradientType::kVariable, GradientType::kBFloat16}) {
      JobConfig job;
      job.work = Work::kShared;
      job.batch_size = job.micro_batches_per_step = 8;
      job.micro_batches_per_push = 2;
      job.model.variable_type = type;
      job.gradient_wire_type = wire;
      EXPECT_EQ(!CheckWork(job).ok(), LimitsOf(job).no_larger_pushes);
    }
  }
}

TEST(JobLimitsTest, AWorkerOfSeveralGradientsAStepSharesNoMemory) {
  JobConfig job;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 2;
  EXPECT_FALSE(LimitsOf(job).no_shared_memory);
  job.replicas_to_aggregate = 4;
  EXPECT_TRUE(LimitsOf(job).no_shared_memory);
}

// The chief refuses to round them: see GradientElementSize().
TEST(JobLimitsTest, GradientsOfShortVariablesAreNotRounded) {
  JobConfig job;
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    job.model.variable_type = type;
    EXPECT_TRUE(LimitsOf(job).no_bfloat16);
  }
}

TEST(JobLimitsTest, AutoLeavesBackupsToTheChief) {
  JobConfig job;
  job.tune_backups = true;
  EXPECT_TRUE(LimitsOf(job).chief_sets_backups);
}

TEST(JobLimitsTest, ChecksRefuseRoundedGradientsWhereTheyAreRuledOut) {
  for (const SyncMode mode : {SyncMode::kStrict, SyncMode::kCompatible}) {
    JobConfig job;
    job.model.kind = kExternalModel;
    job.train_steps = 1;
    job.mode = mode;
    EXPECT_OK(ValidateJobConfig(job));
    job.gradient_wire_type = GradientType::kBFloat16;
    EXPECT_EQ(!ValidateJobConfig(job).ok(), LimitsOf(job).no_bfloat16);
  }
}

}  // namespace
}  // namespace lockstep::chief
