#include "worker/session/pass_facts.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

JobConfig Job() {
  JobConfig job;
  job.seed = 5;
  job.replicas_to_aggregate = 6;
  job.total_num_replicas = 2;
  return job;
}

TEST(PassFactsTest, BatchesAreTheReplicasInTurn) {
  const PassFacts facts(Job(), 1, 3);

  EXPECT_EQ(facts.ReplicaOf(6), 0);
  EXPECT_EQ(facts.ReplicaOf(7), 1);
  EXPECT_EQ(facts.ReplicaOf(8), 2);
}

TEST(PassFactsTest, EachReplicaStepAndSlotHasASeedOfItsOwn) {
  std::set<uint64_t> seeds;
  for (int worker = 0; worker < 2; ++worker) {
    const PassFacts facts(Job(), worker, 2);
    for (const int64_t batch : {0, 1}) {
      for (const int64_t step : {0, 1}) {
        for (const int slot : {0, 1}) {
          seeds.insert(facts.SeedOf({.step = step, .slot = slot}, batch));
        }
      }
    }
  }

  EXPECT_EQ(seeds.size(), 16U);
}

TEST(PassFactsTest, SeedIsThatOfTheWorkerInAJobWithOneReplicaEach) {
  const PassFacts replicas(Job(), 1, 2);
  const PassFacts worker(Job(), 3, 1);

  EXPECT_EQ(replicas.SeedOf({.step = 9}, 2 * 9 + 1),
            worker.SeedOf({.step = 9}, 9));
}

TEST(PassFactsTest, SharedWorkHasTheSameSeedsOnAllWorkers) {
  JobConfig job = Job();
  job.work = Work::kShared;
  job.micro_batches_per_step = 4;
  const PassFacts first(job, 0, 1);
  const PassFacts second(job, 1, 1);

  EXPECT_EQ(first.SeedOf({.step = 3, .slot = 2}, 14),
            second.SeedOf({.step = 3, .slot = 2}, 14));
  EXPECT_EQ(first.passes_per_step, 4);
}

TEST(PassFactsTest, StepMayHaveSeveralPassesOfEachReplica) {
  EXPECT_EQ(PassFacts(Job(), 0, 1).passes_per_step, 3);
  EXPECT_EQ(PassFacts(Job(), 0, 2).passes_per_step, 6);
  JobConfig compatible = Job();
  compatible.mode = SyncMode::kCompatible;
  EXPECT_EQ(PassFacts(compatible, 0, 2).passes_per_step, 2);
}

}  // namespace
}  // namespace lockstep::worker
