#include "deploy/cli/tasks/job_needs.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

JobConfig Job(int replicas_to_aggregate, int total_num_replicas) {
  JobConfig job;
  job.replicas_to_aggregate = replicas_to_aggregate;
  job.total_num_replicas = total_num_replicas;
  return job;
}

TEST(NeededWorkersTest, WithoutBackupsAllAreNeeded) {
  EXPECT_EQ(NeededWorkers({}, 3), 3);
}

TEST(NeededWorkersTest, OneWorkerMakesSharedSteps) {
  JobConfig job;
  job.work = Work::kShared;
  job.micro_batches_per_step = 8;
  EXPECT_EQ(NeededWorkers(job, 3), 1);
}

TEST(NeededWorkersTest, BackupsAreNotNeeded) {
  EXPECT_EQ(NeededWorkers(Job(2, 3), 3), 2);
}

TEST(NeededWorkersTest, FewReplicasHaveAShareEach) {
  EXPECT_EQ(NeededWorkers(Job(8, 2), 2), 2);
}

TEST(NeededWorkersTest, NeverMoreThanThereAreNorNone) {
  EXPECT_EQ(NeededWorkers(Job(9, 9), 2), 2);
  EXPECT_EQ(NeededWorkers({}, 0), 1);
}

TEST(OneWorkerSufficesTest, NotWhereEachWorkerHasAGradientOfItsOwn) {
  EXPECT_FALSE(OneWorkerSuffices(Job(2, 3)));
  JobConfig job = Job(2, 3);
  job.tune_backups = true;
  EXPECT_TRUE(OneWorkerSuffices(job));
}

TEST(NeededWorkersTest, InCompatibleModeOneCanDoItAll) {
  JobConfig job = Job(3, 0);
  job.mode = SyncMode::kCompatible;

  EXPECT_EQ(NeededWorkers(job, 3), 1);
}

}  // namespace
}  // namespace lockstep::cli
