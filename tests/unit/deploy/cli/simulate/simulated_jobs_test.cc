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

}  // namespace
}  // namespace lockstep::cli
