#include "deploy/cli/simulate/simulate_command.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/job/work_checks.h"
#include "deploy/cli/simulate/pass_trace.h"
#include "deploy/cli/simulate/simulated_jobs.h"
#include "deploy/cli/simulate/virtual_cluster.h"
#include "deploy/cli/tasks/job_file.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kDefaultSteps = 500;
constexpr int64_t kDefaultWarmup = 100;
constexpr int64_t kFewestSteps = 15;
// Passes of all workers together for each policy, which takes some seconds.
constexpr int64_t kDefaultPasses = 250'000;
constexpr int kMostWorkers = 100'000;
// Micro-batches of a shared step for each worker, unless a flag or the job says
// their number.
constexpr int kMicroBatchesOfWorker = 4;

// Other workers may make the steps while one is started again.
constexpr absl::Duration kLongestRestart = absl::Hours(24 * 365);

absl::Status ReadTime(absl::string_view flag, const std::string& text,
                      absl::Duration most, absl::Duration& duration) {
  if (absl::ParseDuration(text, &duration) &&
      duration >= absl::ZeroDuration() && duration <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " is ", text, ", but must be a duration such as 10ms, from 0 to ",
      absl::FormatDuration(most),
      most < kLongestRestart ? ", the job's max_wait" : ""));
}

absl::Status CheckJob(const JobConfig& job) {
  if (job.mode == SyncMode::kCompatible) {
    return absl::InvalidArgumentError(
        "mode is COMPATIBLE, but lockstep simulate simulates strict mode; "
        "give --set mode=STRICT");
  }
  if (job.strategy.kind == StrategyKind::kParameterServer) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "strategy.kind is not PARAMETER_SERVER, so the job has no backups to "
      "simulate; give --set strategy.kind=PARAMETER_SERVER");
}

}  // namespace

SimulateCommand::SimulateCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "simulate",
          "Simulates the steps of a job with 0 to 8 backups, with AUTO and "
          "with shared work, and compares their times. The decisions are "
          "those of the code of real jobs, under a virtual clock.")) {
  app_.add_option("--job", job_file_,
                  "Job file: its workers, lease, stall_timeout, "
                  "heartbeat_interval and max_wait are used. Without it, the "
                  "defaults.")
      ->check(CLI::ExistingFile);
  app_.add_option("--set", settings_, "A field of the job: key=value.");
  app_.add_option("--workers", workers_,
                  "Number of workers; default: that of the trace, or of the "
                  "job file.")
      ->check(CLI::Range(2, kMostWorkers));
  CLI::Option& pass_time = *app_.add_option(
      "--pass_time", pass_time_,
      "Distribution of the times of passes: 50ms for all, normal(50ms, "
      "5ms), lognormal(50ms, 0.3) with the median 50ms, exponential(50ms), "
      "or pareto(50ms, 3) with the shortest time 50ms.");
  app_.add_option("--trace", trace_,
                  "JSON file with measured times, in place of --pass_time: "
                  "{\"pass_seconds\": [[0.05, 0.052], ...]}, one array for "
                  "each worker, used in turn if there are more workers.")
      ->check(CLI::ExistingFile)
      ->excludes(&pass_time);
  app_.add_option("--slow", slow_,
                  "Slower workers: 3x4 makes three workers four times slower. "
                  "May be given again.");
  app_.add_option("--die", die_,
                  "How often each worker dies: 1/h is once an hour; at most "
                  "1000/s.")
      ->capture_default_str();
  AddTimes();
  app_.add_option("--steps", steps_,
                  "Measured steps. Default: 500; with more than 500 workers "
                  "fewer, 250000 passes in all but at least 15 steps.")
      ->check(CLI::Range(int64_t{1}, int64_t{10'000'000}));
  app_.add_option("--warmup", warmup_,
                  "Steps before the measured ones. Default: 100; with more "
                  "than 500 workers a fifth of the measured steps.")
      ->check(CLI::Range(int64_t{0}, int64_t{10'000'000}));
  app_.add_option("--most_backups", most_backups_,
                  "Largest number of backups: each number from 0 to this "
                  "one is simulated.")
      ->check(CLI::Range(0, kMostWorkers))
      ->capture_default_str();
  app_.add_option("--micro_batches", micro_batches_,
                  "Micro-batches of a shared step, which has the work of a "
                  "gradient of each worker. Default: the job's "
                  "micro_batches_per_step, or 4 for each worker; above 4096 "
                  "workers, no shared work is simulated.")
      ->check(CLI::Range(1, kMaxMicroBatchesPerStep));
  app_.add_option("--seed", seed_,
                  "Equal seeds give equal passes, for each number of backups.")
      ->check(AtLeast(0))
      ->capture_default_str();
  app_.add_flag("--json", json_, "Print one line of JSON.");
}

void SimulateCommand::AddTimes() {
  app_.add_option("--restart", restart_,
                  "Time from a worker's death to its next process.")
      ->capture_default_str();
  app_.add_option("--overhead", overhead_,
                  "Time from the last gradient of a step to the next step: "
                  "transfer, update, commit.")
      ->capture_default_str();
  app_.add_option("--push_overhead", push_overhead_,
                  "Time that a pass or micro-batch costs its worker besides "
                  "computing: announcement, push, token.")
      ->capture_default_str();
  app_.add_option("--change", change_,
                  "Time for which the servers stand still when the number "
                  "of gradients of a step changes.")
      ->capture_default_str();
}

absl::StatusOr<std::vector<VirtualWorker>> SimulateCommand::MakeWorkers(
    int in_job_file) const {
  std::vector<PassLaw> laws;
  if (!trace_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              ReadFlagFile("--trace", trace_));
    LOCKSTEP_ASSIGN_OR_RETURN(PassTrace trace, ParsePassTrace(text, trace_));
    for (std::vector<double>& worker : trace) {
      laws.push_back(PassLaw::Empirical(std::move(worker)));
    }
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(PassLaw law, PassLaw::Parse(pass_time_));
    laws.push_back(std::move(law));
  }
  const int traced = trace_.empty() ? 0 : static_cast<int>(laws.size());
  const int count = workers_ > 0 ? workers_ : std::max(traced, in_job_file);
  if (count < 2 || count > kMostWorkers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", count, " workers, but a simulation needs 2 to ",
        kMostWorkers, "; give --workers, or total_num_replicas in the job"));
  }
  std::vector<VirtualWorker> workers;
  for (int i = 0; i < count; ++i) {
    workers.push_back({laws[static_cast<size_t>(i) % laws.size()], 1});
  }
  size_t fast = workers.size();
  for (const std::string& text : slow_) {
    LOCKSTEP_ASSIGN_OR_RETURN(const SlowWorkers slow, ParseSlowWorkers(text));
    if (static_cast<size_t>(slow.count) > fast) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--slow ", text, ": ", fast == workers.size() ? "there are " : "of ",
          count, " workers",
          fast == workers.size() ? "" : absl::StrCat(", ", fast, " are left")));
    }
    // From the last one backwards, so that each --slow takes others.
    for (int i = 0; i < slow.count; ++i) workers[--fast].factor = slow.factor;
  }
  return workers;
}

absl::StatusOr<VirtualJob> SimulateCommand::MakeJob() const {
  if (pass_time_.empty() && trace_.empty()) {
    return absl::InvalidArgumentError(
        "neither --pass_time nor --trace is given; give one, such as "
        "--pass_time 'lognormal(50ms, 0.3)'");
  }
  VirtualJob job;
  // Enough for a job without a file.
  std::string text = "train_steps: 1 model { kind: \"external\" }";
  if (!job_file_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(text, ReadFlagFile("--job", job_file_));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      job.job,
      DecodeJobFile(text, job_file_.empty() ? "--set" : job_file_, settings_));
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(job.job));
  LOCKSTEP_ASSIGN_OR_RETURN(job.workers,
                            MakeWorkers(job.job.total_num_replicas));
  LOCKSTEP_ASSIGN_OR_RETURN(job.deaths_per_second, ParseRate(die_));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadTime("--restart", restart_, kLongestRestart, job.restart));
  // A real step that takes longer ends the job.
  const absl::Duration max_wait = job.job.max_wait;
  LOCKSTEP_RETURN_IF_ERROR(
      ReadTime("--overhead", overhead_, max_wait, job.overhead));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadTime("--push_overhead", push_overhead_, max_wait, job.push_overhead));
  LOCKSTEP_RETURN_IF_ERROR(ReadTime("--change", change_, max_wait, job.change));
  const auto workers = static_cast<int64_t>(job.workers.size());
  job.steps = steps_.value_or(
      std::clamp(kDefaultPasses / workers, kFewestSteps, kDefaultSteps));
  // The limit is that of kDefaultSteps: 500 workers.
  job.warmup = warmup_.value_or(workers * kDefaultSteps <= kDefaultPasses
                                    ? kDefaultWarmup
                                    : job.steps / 5);
  job.seed = seed_;
  return job;
}

absl::StatusOr<std::vector<SimulateCommand::Policy>> SimulateCommand::Policies(
    const JobConfig& job, int workers) const {
  std::vector<Policy> policies;
  const int most = std::min(most_backups_, workers - 1);
  for (int backups = 0; backups <= most; ++backups) {
    LOCKSTEP_ASSIGN_OR_RETURN(JobConfig fixed,
                              WithBackups(job, workers, backups));
    policies.push_back({absl::StrCat(backups), std::move(fixed)});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig tuned,
                            WithBackups(job, workers, std::nullopt));
  policies.push_back({"AUTO", std::move(tuned)});
  int numbers = micro_batches_;
  if (numbers == 0) numbers = job.micro_batches_per_step;
  if (numbers == 0 && workers <= kMaxMicroBatchesPerStep) {
    numbers =
        std::min(kMicroBatchesOfWorker * workers, kMaxMicroBatchesPerStep);
  }
  // So many workers cannot have a micro-batch each.
  if (numbers == 0) return policies;
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig shared,
                            WithSharedWork(job, workers, numbers));
  policies.push_back({"SHARED", std::move(shared)});
  return policies;
}

absl::StatusOr<Simulation> SimulateCommand::Simulate(const VirtualJob& base,
                                                     std::ostream& err) const {
  Simulation simulation;
  simulation.workers = static_cast<int>(base.workers.size());
  for (const VirtualWorker& worker : base.workers) {
    simulation.best_rate += 1 / (worker.factor * worker.law.MeanOfDraws());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Policy> policies,
                            Policies(base.job, simulation.workers));
  // A second or more for each policy.
  const bool long_work =
      (base.steps + base.warmup) * simulation.workers >= kDefaultPasses / 10;
  for (const Policy& policy : policies) {
    if (long_work) {
      // To standard error, since standard output may be JSON.
      err << "simulates " << policy.name << ", policy "
          << simulation.runs.size() + 1 << " of " << policies.size()
          << std::endl;
    }
    VirtualJob job = base;
    job.job = policy.job;
    VirtualCluster cluster(job);
    LOCKSTEP_ASSIGN_OR_RETURN(const SimulatedRun run, cluster.Run());
    simulation.runs.push_back({policy.name, run});
    if (policy.job.tune_backups) simulation.changes = cluster.changes();
  }
  return simulation;
}

int SimulateCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::StatusOr<VirtualJob> job = MakeJob();
  if (!job.ok()) {
    err << "lockstep simulate: " << job.status().message() << "\n";
    return kUsageExitCode;
  }
  const absl::StatusOr<Simulation> simulation = Simulate(*job, err);
  if (!simulation.ok()) {
    err << "lockstep simulate: " << simulation.status().message() << "\n";
    return 1;
  }
  terminal.Print(json_ ? SimulationJson(*simulation)
                       : SimulationText(*simulation, terminal.Columns()));
  return 0;
}

}  // namespace lockstep::cli
