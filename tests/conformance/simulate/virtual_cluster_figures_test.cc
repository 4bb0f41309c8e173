// Figures of long simulated jobs beside those of formulas and papers.

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/simulate/virtual_jobs.h"

namespace lockstep::cli {
namespace {

using testing::Auto;
using testing::Gradient;
using testing::JobOf;
using testing::RunOf;

// The mean of the k-th of n exponential times is the sum of 1 / (n - i).
TEST(VirtualClusterFiguresTest, StepsHaveTheOrderStatisticOfTheLaw) {
  VirtualJob job = JobOf("exponential(50ms)", 8, 2);
  job.steps = 4000;
  double expected = 0.001;
  for (int i = 0; i < 6; ++i) expected += 0.05 / (8 - i);
  EXPECT_NEAR(RunOf(job).StepSeconds() / expected, 1, 0.03);
}

// After 100 steps AUTO is within 3 % of the best fixed number.
TEST(VirtualClusterFiguresTest, AutoIsNearTheBestFixedNumberInEachCase) {
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
TEST(VirtualClusterFiguresTest, AFewBackupsAreBestForAHundredMachines) {
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
