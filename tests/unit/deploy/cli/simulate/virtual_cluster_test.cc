#include "deploy/cli/simulate/virtual_cluster.h"

#include <algorithm>

#include "absl/status/status.h"
#include "deploy/cli/simulate/virtual_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `law` for all workers, the last `slow` of which are slower by `factor`.
VirtualJob JobOf(absl::string_view law, int workers, int backups, int slow = 0,
                 double factor = 1) {
  VirtualJob job;
  job.job.stall_timeout = absl::Seconds(2);
  job.job.total_num_replicas = workers;
  job.job.replicas_to_aggregate = workers - backups;
  for (int i = 0; i < workers; ++i) {
    job.workers.push_back(
        {*PassLaw::Parse(law), i < workers - slow ? 1 : factor});
  }
  job.warmup = 100;
  job.steps = 300;
  return job;
}

VirtualJob Auto(VirtualJob job) {
  job.job.tune_backups = true;
  return job;
}

// Steps of 16 micro-batches.
VirtualJob Shared(VirtualJob job) {
  job.job.work = Work::kShared;
  job.job.micro_batches_per_step = job.job.replicas_to_aggregate = 16;
  return job;
}

SimulatedRun RunOf(const VirtualJob& job) {
  const absl::StatusOr<SimulatedRun> run = VirtualCluster(job).Run();
  EXPECT_OK(run);
  SimulatedRun failed;
  failed.time = absl::Seconds(1);
  failed.steps = failed.gradients = 1;
  return run.value_or(failed);
}

double Gradient(const VirtualJob& job) { return RunOf(job).GradientSeconds(); }

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

// The mean of the k-th of n exponential times is the sum of 1 / (n - i).
TEST(VirtualClusterTest, StepsHaveTheOrderStatisticOfTheLaw) {
  VirtualJob job = JobOf("exponential(50ms)", 8, 2);
  job.steps = 4000;
  double expected = 0.001;
  for (int i = 0; i < 6; ++i) expected += 0.05 / (8 - i);
  EXPECT_NEAR(RunOf(job).StepSeconds() / expected, 1, 0.03);
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

// After 100 steps AUTO is within 3 % of the best fixed number.
TEST(VirtualClusterTest, AutoIsNearTheBestFixedNumberInEachCase) {
  const std::vector<VirtualJob> cases = {
      JobOf("constant(50ms)", 4, 0),
      JobOf("constant(50ms)", 4, 0, 1, 4),
      JobOf("constant(50ms)", 6, 0, 4, 2),
      JobOf("normal(50ms, 5ms)", 5, 0, 1, 10),
      JobOf("lognormal(50ms, 0.5)", 4, 0),
      JobOf("lognormal(50ms, 0.5)", 8, 0),
      JobOf("exponential(50ms)", 8, 0)};
  for (size_t i = 0; i < cases.size(); ++i) {
    VirtualJob job = cases[i];
    job.steps = 600;
    double best = 1e9;
    for (int backups = 0; backups < static_cast<int>(job.workers.size());
         ++backups) {
      job.job.replicas_to_aggregate = job.job.total_num_replicas - backups;
      best = std::min(best, Gradient(job));
    }
    job.job.replicas_to_aggregate = job.job.total_num_replicas;
    EXPECT_LE(Gradient(Auto(job)), 1.03 * best) << "case " << i;
  }
}

// Chen, Monga, Bengio and Jozefowicz, "Revisiting Distributed Synchronous SGD"
// (2016): with 100 machines a few backups are best, and more are worse again.
TEST(VirtualClusterTest, AFewBackupsAreBestForAHundredMachines) {
  const auto with = [](int backups) {
    VirtualJob job = JobOf("pareto(1400ms, 20)", 100, backups);
    job.warmup = 0;
    job.steps = 150;
    return Gradient(job);
  };
  const double none = with(0);
  const double four = with(4);
  EXPECT_LT(four, 0.95 * none);
  EXPECT_GT(four, 0.90 * none);
  EXPECT_LT(four, with(1));
  EXPECT_LT(four, with(10));
  EXPECT_LT(with(10), none);
}

}  // namespace
}  // namespace lockstep::cli
