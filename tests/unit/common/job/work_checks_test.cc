#include "common/job/work_checks.h"

#include <string>

#include "common/job/cluster_fit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

JobConfig Shared(int numbers) {
  JobConfig job;
  job.train_steps = 5;
  job.batch_size = 24;
  job.data.train_images = "a";
  job.data.train_labels = "b";
  job.work = Work::kShared;
  job.micro_batches_per_step = numbers;
  return job;
}

TEST(WorkChecksTest, StepTakesTheGradientsOfAllNumbersForAnyNumberOfWorkers) {
  for (const int workers : {1, 2, 7, 30}) {
    const auto job = FitToCluster(Shared(8), workers);

    ASSERT_OK(job);
    EXPECT_EQ(job->replicas_to_aggregate, 8);
    EXPECT_EQ(job->total_num_replicas, workers);
    EXPECT_EQ(job->pass_batch_size(), 3);
  }
}

TEST(WorkChecksTest, ElasticJobMayHaveMoreNumbersThanWorkers) {
  JobConfig job = Shared(8);
  job.elastic_workers = true;

  EXPECT_THAT(FitToCluster(job, 2), IsOk());
}

TEST(WorkChecksTest, PassOfAnOrdinaryJobHasTheWholeBatch) {
  JobConfig job = Shared(0);
  job.work = Work::kOwnBatches;

  EXPECT_EQ(job.pass_batch_size(), 24);
  EXPECT_THAT(FitToCluster(job, 2), IsOk());
}

TEST(WorkChecksTest, BadNumbersAreRefusedWithTheFix) {
  EXPECT_THAT(CheckWork(Shared(0)),
              StatusIs(kInvalid, HasSubstr("micro_batches_per_step is 0, but "
                                           "must be given where work is "
                                           "SHARED: several for each worker, "
                                           "a divisor of batch_size")));
  EXPECT_THAT(CheckWork(Shared(4097)),
              StatusIs(kInvalid, HasSubstr("from 1 to 4096")));
  EXPECT_THAT(CheckWork(Shared(5)),
              StatusIs(kInvalid, HasSubstr("a divisor of batch_size, 24")));
  JobConfig job = Shared(2);
  job.work = Work::kOwnBatches;
  EXPECT_THAT(CheckWork(job), StatusIs(kInvalid, HasSubstr("work: SHARED")));
}

struct Contradiction {
  std::string field;
  void (*spoil)(JobConfig&);
};

TEST(WorkChecksTest, FieldsThatContradictSharedWorkAreNamed) {
  const Contradiction contradictions[] = {
      {"mode", [](JobConfig& j) { j.mode = SyncMode::kCompatible; }},
      {"strategy.kind",
       [](JobConfig& j) {
         j.strategy.kind = StrategyKind::kMultiWorkerMirrored;
       }},
      {"strategy.replicas_per_worker",
       [](JobConfig& j) { j.strategy.replicas_per_worker = 2; }},
      {"replicas_to_aggregate", [](JobConfig& j) { j.tune_backups = true; }},
      {"replicas_to_aggregate",
       [](JobConfig& j) { j.replicas_to_aggregate = 3; }}};
  for (const Contradiction& wrong : contradictions) {
    JobConfig job = Shared(4);
    wrong.spoil(job);
    EXPECT_THAT(CheckWork(job),
                StatusIs(kInvalid, AllOf(HasSubstr(wrong.field + " is "),
                                         HasSubstr("work is SHARED"))));
  }
}

TEST(WorkChecksTest, MicroBatchesOfAPassMustDivideItsShareOfTheBatch) {
  JobConfig job = Shared(4);  // 6 examples a pass
  job.micro_batches = 3;
  EXPECT_THAT(ValidateJobConfig(job), IsOk());
  job.micro_batches = 4;  // divides 24, not 6
  EXPECT_THAT(ValidateJobConfig(job),
              StatusIs(kInvalid, HasSubstr("micro_batches is 4")));
}

TEST(WorkChecksTest, MicroBatchesOfAPushAreAPowerOfTwo) {
  JobConfig job = Shared(6);
  for (const int fine : {0, 1, 2, 4}) {
    job.micro_batches_per_push = fine;
    EXPECT_THAT(CheckWork(job), IsOk());
  }
  job.micro_batches_per_push = 3;
  EXPECT_THAT(CheckWork(job),
              StatusIs(kInvalid, HasSubstr("micro_batches_per_push is 3, but "
                                           "must be a power of two")));
  for (const int wrong : {-1, 8}) {
    job.micro_batches_per_push = wrong;
    EXPECT_THAT(CheckWork(job), StatusIs(kInvalid, HasSubstr("from 1 to 6")));
  }
}

TEST(WorkChecksTest, MicroBatchesOfAPushNeedSharedWork) {
  JobConfig job;
  job.micro_batches_per_push = 2;
  EXPECT_THAT(CheckWork(job),
              StatusIs(kInvalid, HasSubstr("micro_batches_per_push is 2, but "
                                           "must be absent unless work is "
                                           "SHARED")));
}

TEST(WorkChecksTest, SumsThatWorkersWouldRoundOtherwiseAreRefused) {
  const Contradiction contradictions[] = {
      {"gradient_wire_type is BFLOAT16",
       [](JobConfig& j) { j.gradient_wire_type = GradientType::kBFloat16; }},
      {"model.variable_type is \"bfloat16\"",
       [](JobConfig& j) { j.model.variable_type = DType::kBFloat16; }}};
  EXPECT_TRUE(ChoosesPushes(Shared(4)));
  for (const Contradiction& wrong : contradictions) {
    JobConfig job = Shared(4);
    wrong.spoil(job);
    EXPECT_THAT(CheckWork(job), IsOk());
    EXPECT_FALSE(ChoosesPushes(job));
    job.micro_batches_per_push = 2;
    EXPECT_THAT(CheckWork(job), StatusIs(kInvalid, HasSubstr(wrong.field)));
  }
}

TEST(WorkChecksTest, ChiefChoosesPushesOnlyWhereItMay) {
  JobConfig job = Shared(4);
  job.micro_batches_per_push = 2;
  EXPECT_FALSE(ChoosesPushes(job));
  job = Shared(4);
  job.model.kind = kExternalModel;
  EXPECT_FALSE(ChoosesPushes(job));
  EXPECT_FALSE(ChoosesPushes(JobConfig()));
}

TEST(WorkChecksTest, ServersShareNoMemoryWhereAGradientCouldBeOverwritten) {
  JobConfig job;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 2;
  EXPECT_EQ(WhyNoSharedMemory(job), "");
  job.replicas_to_aggregate = 4;
  EXPECT_NE(WhyNoSharedMemory(job), "");
  job.replicas_to_aggregate = 2;
  job.work = Work::kShared;
  EXPECT_NE(WhyNoSharedMemory(job), "");
  job.work = Work::kOwnBatches;
  job.mode = SyncMode::kCompatible;
  EXPECT_THAT(WhyNoSharedMemory(job), ::testing::HasSubstr("in place"));
}

}  // namespace
}  // namespace lockstep
