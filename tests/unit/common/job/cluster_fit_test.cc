#include "common/job/cluster_fit.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

JobConfig Job() {
  JobConfig job;
  job.train_steps = 5;
  job.batch_size = 2;
  job.data.train_images = "a";
  job.data.train_labels = "b";
  return job;
}

TEST(FitToClusterTest, WhatTheJobLeavesOpenFollowsFromTheWorkers) {
  JobConfig job = Job();
  job.lease = absl::Seconds(7);

  const absl::StatusOr<JobConfig> fitted = FitToCluster(job, 3);

  ASSERT_THAT(fitted, IsOk());
  EXPECT_EQ(fitted->total_num_replicas, 3);
  EXPECT_EQ(fitted->replicas_to_aggregate, 3);
  EXPECT_EQ(fitted->initial_tokens, 3);
  EXPECT_EQ(fitted->stall_timeout, absl::Seconds(2));
}

TEST(FitToClusterTest, AStallIsNoticedBeforeAShortLeaseEnds) {
  JobConfig job = Job();
  job.lease = absl::Milliseconds(1500);

  const absl::StatusOr<JobConfig> fitted = FitToCluster(job, 3);

  ASSERT_THAT(fitted, IsOk());
  EXPECT_EQ(fitted->stall_timeout, absl::Milliseconds(1500));
}

TEST(FitToClusterTest, ReplicasThatTheClusterDoesNotHaveAreRefused) {
  JobConfig job = Job();
  job.total_num_replicas = 3;

  EXPECT_THAT(FitToCluster(job, 8),
              StatusIs(kInvalid, HasSubstr("total_num_replicas is 3; the "
                                           "cluster has 8 workers; make")));
  EXPECT_THAT(FitToCluster(job, 1),
              StatusIs(kInvalid, HasSubstr("the cluster has 1 worker;")));
}

// A step whose gradients cannot all be pushed would never end.
TEST(FitToClusterTest, FewerInitialTokensThanAStepNeedsAreRefused) {
  JobConfig job = Job();
  job.mode = SyncMode::kCompatible;
  job.replicas_to_aggregate = 4;
  job.initial_tokens = 1;
  EXPECT_THAT(FitToCluster(job, 2),
              StatusIs(kInvalid, HasSubstr("initial_tokens is 1, but must be "
                                           "absent, or from 2 to")));
  job.total_num_replicas = 2;
  EXPECT_THAT(ValidateJobConfig(job), StatusIs(kInvalid));
  job.initial_tokens = 2;
  EXPECT_THAT(FitToCluster(job, 2), IsOk());
  // With backups there may be fewer than none, which is none.
  job = Job();
  job.mode = SyncMode::kCompatible;
  job.replicas_to_aggregate = 2;
  job.initial_tokens = -2;
  EXPECT_THAT(FitToCluster(job, 4), IsOk());
  job.initial_tokens = -3;
  EXPECT_THAT(FitToCluster(job, 4),
              StatusIs(kInvalid, HasSubstr("from -2 to")));
}

TEST(FitToClusterTest, AnElasticJobTakesOneGradientOfEachWorkerAtMost) {
  JobConfig job = Job();
  job.elastic_workers = true;
  job.replicas_to_aggregate = 3;

  EXPECT_THAT(FitToCluster(job, 2),
              StatusIs(kInvalid, HasSubstr("elastic_workers: 3 gradients")));
  EXPECT_THAT(FitToCluster(job, 3), IsOk());
}

TEST(FitToClusterTest, AutoBeginsWithTheGradientsOfAllWorkers) {
  JobConfig job;
  job.train_steps = 1;
  job.model.kind = kExternalModel;
  job.tune_backups = true;
  const auto fitted = FitToCluster(job, 4);
  ASSERT_OK(fitted);
  EXPECT_EQ(fitted->replicas_to_aggregate, 4);
  EXPECT_TRUE(fitted->tune_backups);
}

TEST(FitToClusterTest, AutoIsRefusedWhereThereCanBeNoBackup) {
  JobConfig job;
  job.train_steps = 1;
  job.model.kind = kExternalModel;
  job.tune_backups = true;
  EXPECT_THAT(FitToCluster(job, 1), StatusIs(kInvalid, HasSubstr("1 worker")));
  // Workers may join.
  job.elastic_workers = true;
  EXPECT_OK(FitToCluster(job, 1));
  job.elastic_workers = false;
  job.mode = SyncMode::kCompatible;
  EXPECT_THAT(FitToCluster(job, 4),
              StatusIs(kInvalid, HasSubstr("replicas_to_aggregate is AUTO")));
  job.mode = SyncMode::kStrict;
  for (const StrategyKind kind :
       {StrategyKind::kMirrored, StrategyKind::kMultiWorkerMirrored}) {
    job.strategy.kind = kind;
    EXPECT_THAT(ValidateJobConfig(job),
                StatusIs(kInvalid, HasSubstr("replicas_to_aggregate is AUTO")));
  }
}

}  // namespace
}  // namespace lockstep
