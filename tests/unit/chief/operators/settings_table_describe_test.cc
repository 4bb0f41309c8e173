#include "chief/operators/settings_table.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

JobConfig Elastic(int replicas, int workers) {
  JobConfig job;
  job.replicas_to_aggregate = replicas;
  job.total_num_replicas = workers;
  job.learning_rate.base = 0.5;
  job.elastic_workers = true;
  return job;
}

TEST(DescribeChangeTest, NamesThePushesOfSharedWork) {
  JobConfig job = Elastic(8, 2);
  job.work = Work::kShared;
  job.micro_batches_per_step = 8;
  RunSettings from = InitialSettings(job);
  RunSettings to = from;
  to.replicas_to_aggregate = 2;
  to.paused = true;
  EXPECT_EQ(DescribeChange(job, from, to),
            "micro_batches_per_push 1 -> 4, paused");
  EXPECT_EQ(DescribeChange(job, to, from),
            "micro_batches_per_push 4 -> 1, resumed");
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
