#include "deploy/cli/simulate/virtual_cluster.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/simulate/virtual_jobs.h"

namespace lockstep::cli {
namespace {

using testing::Auto;
using testing::Gradient;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobOf;
using testing::RunOf;
using testing::Shared;

TEST(VirtualClusterTest, StepOfEqualWorkersTakesAPassAndTheOverhead) {
  const SimulatedRun run = RunOf(JobOf("constant(50ms)", 4, 0));
  EXPECT_NEAR(run.StepSeconds(), 0.051, 1e-6);
  EXPECT_EQ(run.gradients, 1200);
  EXPECT_EQ(run.WastedFraction(), 0);
}

TEST(VirtualClusterTest, StepWaitsForTheSlowestWithoutABackup) {
  EXPECT_NEAR(RunOf(JobOf("constant(50ms)", 4, 0, 1, 4)).StepSeconds(), 0.201,
              1e-6);
}

TEST(VirtualClusterTest, BackupsPassIsDroppedWithTheStep) {
  const SimulatedRun run = RunOf(JobOf("constant(50ms)", 4, 1, 1, 4));
  EXPECT_NEAR(run.StepSeconds(), 0.051, 1e-6);
  // The slow worker computes for 51 of 201 ms, the others for 50.
  EXPECT_NEAR(run.WastedFraction(), 51.0 / 201, 0.002);
}

// The workers have the speeds 1, 1, 1 and 1/4.
TEST(VirtualClusterTest, SharedStepTakesHardlyMoreThanTheSumOfSpeedsAllows) {
  const SimulatedRun equal = RunOf(Shared(JobOf("constant(100ms)", 4, 0)));
  EXPECT_NEAR(equal.StepSeconds(), 0.101, 1e-6);
  EXPECT_EQ(equal.gradients, 1200);
  const SimulatedRun run = RunOf(Shared(JobOf("constant(100ms)", 4, 0, 1, 4)));
  EXPECT_GE(run.StepSeconds(), 0.4 / 3.25);
  EXPECT_LE(run.StepSeconds(), 1.05 * 0.4 / 3.25);
  // The slow worker's last number, which others repeat.
  EXPECT_GT(run.WastedFraction(), 0.01);
  EXPECT_LT(run.WastedFraction(), 0.1);
}

TEST(VirtualClusterTest, PushesCostTheirWorkersTimeThatIsNoComputing) {
  VirtualJob job = Shared(JobOf("constant(100ms)", 4, 0));
  const SimulatedRun free = RunOf(job);
  job.push_overhead = absl::Milliseconds(2);
  const SimulatedRun run = RunOf(job);
  // Four of the 16 micro-batches for each worker.
  EXPECT_NEAR(run.StepSeconds(), free.StepSeconds() + 4 * 0.002, 1e-6);
  EXPECT_EQ(run.computed, free.computed);
}

// Both backups' passes end in each step, also in the last one before.
TEST(VirtualClusterTest, OneMeasuredStepWastesNoMoreThanItComputes) {
  VirtualJob job = JobOf("constant(50ms)", 3, 2);
  job.steps = 1;
  const SimulatedRun run = RunOf(job);
  EXPECT_NEAR(run.WastedFraction(), 2 / 3.0, 0.01);
}

TEST(VirtualClusterTest, LawWithoutAMeanIsNoDeath) {
  VirtualJob job = JobOf("pareto(50ms, 0.5)", 8, 0);
  const auto run = VirtualCluster(job).Run();
  EXPECT_THAT(run, testing::StatusIs(absl::StatusCode::kDeadlineExceeded,
                                     HasSubstr("passes take too long")));
}

// No lease ends: the others repeat the number of a worker that has died.
TEST(VirtualClusterTest, DeathCostsAMicroBatchOfASharedStep) {
  VirtualJob job = Shared(JobOf("constant(100ms)", 4, 0));
  job.job.lease = absl::Minutes(1);
  job.restart = absl::Seconds(30);
  job.deaths_per_second = 1.0 / 60;
  const SimulatedRun run = RunOf(job);
  EXPECT_GT(run.deaths, 0);
  // A third of the time each worker is away.
  EXPECT_LT(run.StepSeconds(), 0.101 * 2.2);
}

TEST(VirtualClusterTest, EqualSeedsGiveEqualRuns) {
  const VirtualJob job = Auto(JobOf("lognormal(50ms, 0.5)", 8, 0));
  EXPECT_EQ(RunOf(job).time, RunOf(job).time);
  VirtualJob other = job;
  other.seed = 2;
  EXPECT_NE(RunOf(job).time, RunOf(other).time);
}

TEST(VirtualClusterTest, DeadWorkerHoldsUpAStepUntilItIsBack) {
  VirtualJob job = JobOf("constant(50ms)", 4, 0);
  job.deaths_per_second = 1.0 / 60;
  job.steps = 2000;
  const SimulatedRun run = RunOf(job);
  ASSERT_GT(run.deaths, 3);
  const double lost = absl::ToDoubleSeconds(run.time) - 2000 * 0.051;
  // Deaths may overlap, and each costs the pass that it interrupts.
  EXPECT_GT(lost, 3 * 5);
  EXPECT_LT(lost, static_cast<double>(run.deaths) * 5.1);
}

// Also a death in the first measured pass, after one that is not measured.
TEST(VirtualClusterTest, AllThatAWorkerComputesBeforeItDiesIsWasted) {
  VirtualJob job = JobOf("constant(50ms)", 1, 0);
  job.overhead = absl::ZeroDuration();
  job.deaths_per_second = 5;
  job.warmup = 1;
  job.steps = 2;
  int64_t deaths = 0;
  for (job.seed = 1; job.seed <= 100; ++job.seed) {
    const SimulatedRun run = RunOf(job);
    deaths += run.deaths;
    EXPECT_NEAR(absl::ToDoubleSeconds(run.computed - run.wasted), 2 * 0.05,
                1e-6)
        << "seed " << job.seed;
  }
  EXPECT_GT(deaths, 20);
}

TEST(VirtualClusterTest, BackupCoversADeadWorker) {
  VirtualJob job = JobOf("constant(50ms)", 4, 1);
  job.deaths_per_second = 1.0 / 600;
  job.steps = 2000;
  const SimulatedRun run = RunOf(job);
  ASSERT_GT(run.deaths, 0);
  EXPECT_NEAR(run.StepSeconds(), 0.051, 0.001);
}

TEST(VirtualClusterTest, WorkersThatDieTooOftenEndTheJob) {
  VirtualJob job = JobOf("constant(50s)", 4, 0);
  job.deaths_per_second = 1;
  EXPECT_THAT(VirtualCluster(job).Run().status().message(),
              HasSubstr("max_wait"));
}

TEST(VirtualClusterTest, AutoGoesOnWithoutADeadWorker) {
  VirtualJob job = JobOf("constant(50ms)", 4, 0);
  job.deaths_per_second = 1.0 / 200;
  job.restart = absl::Seconds(60);
  job.steps = 2000;
  EXPECT_LT(Gradient(Auto(job)), 0.7 * Gradient(job));
}

TEST(VirtualClusterTest, AutoSaysWhenAndWhy) {
  VirtualCluster cluster(Auto(JobOf("constant(50ms)", 4, 0, 1, 4)));
  const absl::StatusOr<SimulatedRun> run = cluster.Run();
  ASSERT_OK(run);
  EXPECT_EQ(run->replicas, 3);
  ASSERT_EQ(cluster.changes().size(), 1u);
  EXPECT_THAT(cluster.changes()[0], HasSubstr("1 backup instead of 0"));
  EXPECT_THAT(cluster.changes()[0], HasSubstr("worker 3"));
}

TEST(VirtualClusterTest, EqualWorkersNeedNoChange) {
  VirtualCluster cluster(Auto(JobOf("constant(50ms)", 4, 0)));
  ASSERT_OK(cluster.Run());
  EXPECT_THAT(cluster.changes(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::cli
