#include "tests/benchmark/straggler_simulation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "deploy/cli/simulate/simulated_jobs.h"
#include "deploy/cli/simulate/virtual_cluster.h"

namespace lockstep::benchmark {
namespace {

constexpr int64_t kSteps = 5000;
constexpr int64_t kWarmup = 100;
// From a kill until the next process has registered.
constexpr absl::Duration kRestart = absl::Milliseconds(500);
constexpr double kGradients = 4;  // of the times that cases compare

absl::StatusOr<JobConfig> JobOf(const Candidate& candidate) {
  JobConfig job;
  job.train_steps = 1;
  job.model.kind = kExternalModel;
  job.heartbeat_interval = absl::Milliseconds(candidate.heartbeat_ms);
  job.lease = absl::Milliseconds(candidate.lease_ms);
  const int workers = candidate.workers;
  if (candidate.numbers > 0) {
    return cli::WithSharedWork(job, workers, candidate.numbers,
                               std::max(candidate.push, 1));
  }
  if (candidate.tuned) return cli::WithBackups(job, workers, std::nullopt);
  return cli::WithBackups(job, workers, workers - candidate.aggregate);
}

// The passes of a worker. The simulator's shared steps have the work of a pass
// of each worker; the benchmark's have micro-batches of a fixed time.
absl::StatusOr<cli::PassLaw> LawOf(const Candidate& candidate, bool hangs) {
  const double pass_ms =
      candidate.numbers > 0
          ? static_cast<double>(candidate.compute_ms * candidate.numbers) /
                candidate.workers
          : static_cast<double>(candidate.compute_ms);
  if (candidate.sigma > 0) {
    // The mean stays: see PassTimes::Next().
    const double median =
        pass_ms * std::exp(-candidate.sigma * candidate.sigma / 2);
    return cli::PassLaw::Parse(
        absl::StrCat("lognormal(", median, "ms, ", candidate.sigma, ")"));
  }
  if (!hangs)
    return cli::PassLaw::Parse(absl::StrCat("constant(", pass_ms, "ms)"));
  // One pass in as many as take hang_every_ms takes hang_ms more.
  std::vector<double> seconds(candidate.hang_every_ms / candidate.compute_ms,
                              pass_ms / 1000);
  seconds.back() += static_cast<double>(candidate.hang_ms) / 1000 * pass_ms /
                    static_cast<double>(candidate.compute_ms);
  return cli::PassLaw::Empirical(std::move(seconds));
}

}  // namespace

absl::StatusOr<std::optional<double>> SimulatedMs(
    const StragglerCase& straggler, const SimulatedCosts& costs) {
  const Candidate& candidate = straggler.candidate;
  if (candidate.compatible || candidate.last_absent ||
      candidate.compute_ms <= 0) {
    return std::nullopt;
  }
  cli::VirtualJob job;
  LOCKSTEP_ASSIGN_OR_RETURN(job.job, JobOf(candidate));
  for (int worker = 0; worker < candidate.workers; ++worker) {
    const bool last = worker == candidate.workers - 1;
    LOCKSTEP_ASSIGN_OR_RETURN(
        cli::PassLaw law,
        LawOf(candidate, last && candidate.hang_every_ms > 0));
    const bool slow = worker >= candidate.workers - candidate.slow_workers;
    job.workers.push_back({std::move(law), slow ? candidate.slow_factor : 1.0});
  }
  // The benchmark kills one worker; here each dies as seldom as makes that
  // many.
  if (candidate.kill_every_ms > 0) {
    job.deaths_per_second = 1000.0 /
                            static_cast<double>(candidate.kill_every_ms) /
                            candidate.workers;
  }
  job.restart = kRestart;
  job.overhead = costs.overhead;
  job.push_overhead = costs.push_overhead;
  job.warmup = kWarmup;
  job.steps = kSteps;
  LOCKSTEP_ASSIGN_OR_RETURN(const cli::SimulatedRun run,
                            cli::VirtualCluster(job).Run());
  return 1000 * (straggler.per_gradient ? kGradients * run.GradientSeconds()
                                        : run.StepSeconds());
}

std::string AgreementTable(
    const std::vector<StragglerCase>& cases,
    const std::vector<Measured>& measured,
    const std::vector<std::optional<double>>& simulated) {
  constexpr char kFormat[] = "%-36s  %11s  %12s  %s\n";
  std::string text =
      absl::StrFormat(kFormat, "case", "measured ms", "simulated ms", "off");
  for (size_t i = 0; i < cases.size(); ++i) {
    const double ms = MeasuredMs(cases[i], measured[i]);
    const std::optional<double>& other = simulated[i];
    absl::StrAppend(
        &text, absl::StrFormat(
                   kFormat, cases[i].what, absl::StrFormat("%.1f", ms),
                   other.has_value() ? absl::StrFormat("%.1f", *other) : "-",
                   other.has_value()
                       ? absl::StrFormat("%+.1f %%", 100 * (*other / ms - 1))
                       : "-"));
  }
  return text;
}

}  // namespace lockstep::benchmark
