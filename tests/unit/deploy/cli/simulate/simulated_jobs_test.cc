#include "deploy/cli/simulate/simulated_jobs.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

JobConfig Job() {
  JobConfig job;
  job.train_steps = 1;
  job.model.kind = kExternalModel;
  return job;
}

TEST(SimulatedJobsTest, BackupsAreFixedOrOfTheChiefsChoice) {
  const auto fixed = WithBackups(Job(), 5, 2);
  ASSERT_OK(fixed);
  EXPECT_EQ(fixed->replicas_to_aggregate, 3);
  EXPECT_EQ(fixed->total_num_replicas, 5);
  EXPECT_FALSE(fixed->tune_backups);
  const auto chosen = WithBackups(Job(), 5, std::nullopt);
  ASSERT_OK(chosen);
  EXPECT_TRUE(chosen->tune_backups);
  EXPECT_EQ(chosen->replicas_to_aggregate, 5);
}

// A job of shared work has the pushes of a step in place of its gradients.
TEST(SimulatedJobsTest, SharedWorkIsPushedInBlocks) {
  const auto shared = WithSharedWork(Job(), 3, 16, 4);
  ASSERT_OK(shared);
  EXPECT_TRUE(shared->shares_work());
  EXPECT_EQ(shared->replicas_to_aggregate, 4);

  const auto back = WithBackups(*shared, 3, 0);
  ASSERT_OK(back);
  EXPECT_FALSE(back->shares_work());
  EXPECT_EQ(back->replicas_to_aggregate, 3);
}

JobConfig BuiltInJob() {
  JobConfig job;
  job.train_steps = 1;
  job.batch_size = 32;
  job.micro_batches = 4;
  job.data.train_images = "images";
  job.data.train_labels = "labels";
  return job;
}

// Fields that real jobs of shared work do not have must not keep other jobs
// from being compared with it.
TEST(SimulatedJobsTest, JobsThatContradictSharedWorkAreCompared) {
  ASSERT_OK(ValidateJobConfig(BuiltInJob()));
  EXPECT_OK(WithSharedWork(BuiltInJob(), 3, 12));

  JobConfig local = BuiltInJob();
  local.local_steps = 4;
  local.local.learning_rate.base = 0.1;
  ASSERT_OK(ValidateJobConfig(local));
  EXPECT_OK(WithSharedWork(local, 3, 12));

  JobConfig several = BuiltInJob();
  several.strategy.replicas_per_worker = 2;
  ASSERT_OK(ValidateJobConfig(several));
  EXPECT_OK(WithSharedWork(several, 3, 12));
  several.strategy.replicas_per_worker = 0;
  several.strategy.devices = {"cpu:0", "cpu:1"};
  ASSERT_OK(ValidateJobConfig(several));
  EXPECT_OK(WithSharedWork(several, 3, 12));

  JobConfig shared = BuiltInJob();
  shared.work = Work::kShared;
  shared.micro_batches_per_step = 8;
  ASSERT_OK(ValidateJobConfig(shared));
  EXPECT_OK(WithSharedWork(shared, 3, 8));
  EXPECT_OK(WithBackups(shared, 3, 1));
}

}  // namespace
}  // namespace lockstep::cli
