#include "worker/loop/loop_options.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(LoopOptionsTest, FollowFromTheJob) {
  JobConfig job;
  job.mode = SyncMode::kCompatible;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 3;
  job.micro_batches_per_step = 8;
  job.train_steps = 100;
  const TrainingLoop::Options options = LoopOptionsOf(job, 1, 7);
  EXPECT_EQ(options.mode, SyncMode::kCompatible);
  EXPECT_EQ(options.replicas_to_aggregate, 2);
  EXPECT_EQ(options.total_num_replicas, 3);
  EXPECT_EQ(options.worker, 1);
  EXPECT_EQ(options.first_step, 7);
  EXPECT_EQ(options.numbers, 8);
  EXPECT_EQ(options.train_steps, 100);
  EXPECT_EQ(options.leaving, nullptr);
  EXPECT_EQ(options.clipper, nullptr);
}

}  // namespace
}  // namespace lockstep::worker
