#include "chief/operators/settings_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/learning_rate.h"
#include "common/job/replicas.h"
#include "common/job/rounding_checks.h"
#include "common/job/variable_settings.h"
#include "common/plan/number_tree.h"

namespace lockstep::chief {
namespace {

// The factor applies to the rates of all optimizers.
absl::Status CheckRateOfFtrl(const JobConfig& job,
                             const std::vector<DType>& types, double rate,
                             double scale) {
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job);
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  for (size_t i = 0; i < optimizers.size(); ++i) {
    const std::optional<StepRate> zero = ZeroRateOfFtrl(
        optimizers[i], rates[i], job.train_steps, types[i], scale);
    if (!zero.has_value()) continue;
    const std::string optimizer =
        i == 0 ? "optimizer"
               : absl::StrCat("variable_optimizers[", i - 1, "].optimizer");
    return absl::FailedPreconditionError(absl::StrCat(
        "learning_rate is ", rate, ", which makes that of step ", zero->step,
        " ", zero->rate, ", which is 0 in updates of ",
        std::string(DTypeName(types[i])), " variables, but ", optimizer,
        ".kind is FTRL, which divides by it; give a larger one"));
  }
  return absl::OkStatus();
}

absl::Status CheckRate(const JobConfig& job, const std::vector<DType>& types,
                       double rate) {
  if (rate <= 0 || !std::isfinite(rate)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "learning_rate is ", rate, ", but must be a finite number above 0"));
  }
  // Settings keep a factor for the schedule.
  const double scale = rate / job.learning_rate.base;
  if (scale <= 0 || !std::isfinite(scale)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "learning_rate is ", rate, ", too far from that of the job file, ",
        job.learning_rate.base, ": their ratio is ", scale));
  }
  const std::vector<OptimizerConfig> rules = OptimizersOf(job);
  std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  for (size_t i = 0; i < rules.size(); ++i) {
    rates[i].base *= scale;
    for (double& value : rates[i].values) value *= scale;
    LOCKSTEP_RETURN_IF_ERROR(CheckRates(rules[i], rates[i], types[i]));
  }
  return CheckRateOfFtrl(job, types, rate, scale);
}

}  // namespace

RunSettings InitialSettings(const JobConfig& job) {
  RunSettings settings;
  settings.replicas_to_aggregate = job.replicas_to_aggregate;
  for (int i = 0; job.elastic_workers && i < job.total_num_replicas; ++i) {
    settings.workers.push_back(i);
  }
  return settings;
}

std::string DescribeChange(const JobConfig& job, const RunSettings& from,
                           const RunSettings& to) {
  std::vector<std::string> changes;
  if (job.shares_work() &&
      from.replicas_to_aggregate != to.replicas_to_aggregate) {
    const int numbers = job.micro_batches_per_step;
    changes.push_back(
        absl::StrCat("micro_batches_per_push ",
                     BlockSizeOf(numbers, from.replicas_to_aggregate), " -> ",
                     BlockSizeOf(numbers, to.replicas_to_aggregate)));
  } else if (from.replicas_to_aggregate != to.replicas_to_aggregate) {
    changes.push_back(absl::StrCat("replicas_to_aggregate ",
                                   from.replicas_to_aggregate, " -> ",
                                   to.replicas_to_aggregate));
  }
  if (from.learning_rate_scale != to.learning_rate_scale) {
    const double base = job.learning_rate.base;
    changes.push_back(absl::StrCat("learning_rate ",
                                   base * from.learning_rate_scale, " -> ",
                                   base * to.learning_rate_scale));
  }
  if (from.paused != to.paused) {
    changes.push_back(to.paused ? "paused" : "resumed");
  }
  if (from.workers != to.workers) {
    changes.push_back(absl::StrCat("workers ", absl::StrJoin(from.workers, " "),
                                   " -> ", absl::StrJoin(to.workers, " ")));
  }
  return absl::StrJoin(changes, ", ");
}

SettingsTable::SettingsTable(const JobConfig& job)
    : job_(job),
      wanted_(InitialSettings(job)),
      fixed_(FixedOf(job.replicas_to_aggregate, job.total_num_replicas)),
      types_(OptimizersOf(job).size(), job.model.variable_type) {}

int SettingsTable::FixedOf(int replicas, int workers) const {
  return job_.elastic_policy == ElasticPolicy::kFixedBackups
             ? workers - replicas
             : replicas;
}

void SettingsTable::Open(const RunSettings& in_effect) {
  MutexLock lock(mutex_);
  open_ = true;
  wanted_ = in_effect;
  const int replicas = wanted_.replicas_to_aggregate;
  // If A is at the end of its range, it does not show the number that was
  // fixed.
  const bool clipped = job_.elastic_policy == ElasticPolicy::kFixedBackups
                           ? replicas <= 1
                           : replicas >= num_workers();
  if (!clipped) fixed_ = FixedOf(replicas, num_workers());
}

void SettingsTable::Close(const std::string& reason, bool over) {
  MutexLock lock(mutex_);
  open_ = false;
  over_ = over;
  closed_ = reason;
}

void SettingsTable::Stop(const std::string& reason) {
  MutexLock lock(mutex_);
  // The first reason is the one that operators must see.
  if (stops_.empty()) stops_ = absl::StrCat("the job is stopping: ", reason);
}

absl::Status SettingsTable::CheckOpen() const {
  if (!open_) return absl::FailedPreconditionError(closed_);
  return stops_.empty() ? absl::OkStatus()
                        : absl::FailedPreconditionError(stops_);
}

int SettingsTable::num_workers() const {
  return wanted_.workers.empty() ? job_.total_num_replicas
                                 : static_cast<int>(wanted_.workers.size());
}

absl::Status SettingsTable::CheckReplicas(int replicas) const {
  if (replicas < 1 || replicas > kMaxReplicas) {
    return absl::InvalidArgumentError(
        absl::StrCat("replicas_to_aggregate is ", replicas,
                     ", but must be in [1, ", kMaxReplicas, "]"));
  }
  if (job_.tune_backups) {
    return absl::FailedPreconditionError(absl::StrCat(
        "replicas_to_aggregate cannot be changed to ", replicas,
        ": it is AUTO, so the chief chooses it; stop the job and set a number "
        "in its file"));
  }
  // Accumulators take any number of gradients, even several of one worker.
  if (job_.mode == SyncMode::kCompatible) return absl::OkStatus();
  if (job_.strategy.kind == StrategyKind::kMultiWorkerMirrored &&
      replicas != num_workers()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "replicas_to_aggregate cannot be changed to ", replicas, ": each step ",
        "takes the gradients of all ", num_workers(),
        " workers where strategy.kind is MULTI_WORKER_MIRRORED"));
  }
  if (job_.shares_work()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "replicas_to_aggregate cannot be changed: work is SHARED, and each "
        "step takes the gradients of all its ",
        job_.micro_batches_per_step, " micro-batches"));
  }
  if (job_.total_num_replicas < job_.replicas_to_aggregate) {
    return absl::FailedPreconditionError(absl::StrCat(
        "replicas_to_aggregate cannot be changed: the ",
        job_.total_num_replicas, " workers of this job share ",
        job_.replicas_to_aggregate,
        " gradients of a step in strict mode, and know their shares from the "
        "start; stop the job and change its file"));
  }
  if (replicas <= num_workers()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "replicas_to_aggregate is ", replicas, ", but the job has ",
      num_workers(),
      " workers, of one gradient a step each in strict mode; it must be at "
      "most ",
      num_workers()));
}

absl::Status SettingsTable::CheckRemoval(int worker) const {
  if (!job_.elastic_workers) {
    return absl::FailedPreconditionError(
        "the job has no elastic_workers: true, so its workers stay");
  }
  if (!std::binary_search(wanted_.workers.begin(), wanted_.workers.end(),
                          worker)) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", worker, " is none of the workers ",
                     absl::StrJoin(wanted_.workers, ", ")));
  }
  if (worker == 0 && job_.strategy.kind == StrategyKind::kMultiWorkerMirrored) {
    return absl::FailedPreconditionError(
        "worker 0 cannot be taken out: its mirror commits the steps of the "
        "job; stop the job instead");
  }
  // Workers whose removal is wanted count as gone, except this one: its removal
  // may be asked for again, for example because it died before it could leave.
  const size_t stay = wanted_.workers.size() - to_leave_.size();
  if (stay + to_leave_.count(worker) > 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", worker, " is the last one; stop the job instead"));
}

absl::StatusOr<int64_t> SettingsTable::Change(const SettingsChange& change) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckOpen());
  // All checks first: a call that fails must change nothing.
  if (change.replicas_to_aggregate.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckReplicas(*change.replicas_to_aggregate));
  }
  if (change.learning_rate.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckRate(job_, types_, *change.learning_rate));
  }
  if (change.remove_worker.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckRemoval(*change.remove_worker));
    to_leave_.insert(*change.remove_worker);
  }
  RunSettings next = wanted_;
  if (change.replicas_to_aggregate.has_value()) {
    next.replicas_to_aggregate = *change.replicas_to_aggregate;
    // Later joins and leaves keep this number.
    fixed_ = FixedOf(next.replicas_to_aggregate, num_workers());
  }
  if (change.learning_rate.has_value()) {
    next.learning_rate_scale = *change.learning_rate / job_.learning_rate.base;
  }
  if (change.paused.has_value()) next.paused = *change.paused;
  if (!(next == wanted_)) ++next.revision;
  wanted_ = next;
  // The revision of a removal comes when the worker leaves.
  return wanted_.revision + (change.remove_worker.has_value() ? 1 : 0);
}

void SettingsTable::Tune(int replicas) {
  MutexLock lock(mutex_);
  if (!open_) return;
  // Operators' later changes must begin from the chief's number, or they would
  // undo it.
  wanted_.replicas_to_aggregate = replicas;
  fixed_ = FixedOf(replicas, num_workers());
  ++wanted_.revision;
}

absl::Status SettingsTable::RequestCheckpoint() {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckOpen());
  if (job_.checkpoint.directory.empty()) {
    return absl::FailedPreconditionError(
        "the job file has no checkpoint.directory, so there is nowhere to "
        "write a checkpoint");
  }
  checkpoint_wanted_ = true;
  return absl::OkStatus();
}

bool SettingsTable::checkpoint_wanted() const {
  MutexLock lock(mutex_);
  return checkpoint_wanted_;
}

void SettingsTable::CheckpointBegun() {
  MutexLock lock(mutex_);
  checkpoint_wanted_ = false;
}

void SettingsTable::SetWorkers(std::vector<int> workers) {
  wanted_.workers = std::move(workers);
  ++wanted_.revision;
  if (job_.shares_work()) return;  // the number of micro-batches stays
  const int n = static_cast<int>(wanted_.workers.size());
  wanted_.replicas_to_aggregate =
      job_.elastic_policy == ElasticPolicy::kFixedBackups
          ? std::max(1, n - fixed_)
          : std::min(n, fixed_);
}

void SettingsTable::KnowExamples(int64_t count) {
  MutexLock lock(mutex_);
  if (count > 0) examples_ = count;
}

void SettingsTable::KnowVariables(const std::vector<VariableSpec>& variables) {
  const auto settings = SettingsOf(job_, variables);
  if (!settings.ok()) return;  // such a job does not begin
  MutexLock lock(mutex_);
  for (size_t i = 0; i < variables.size(); ++i) {
    const bool updated = !variables[i].buffer && (*settings)[i].trained;
    // Rates of the other types are numbers of float32.
    if (!updated || variables[i].dtype != DType::kFloat16) continue;
    types_[(*settings)[i].optimizer] = DType::kFloat16;
  }
}

absl::Status SettingsTable::CheckShares(int64_t workers) const {
  const int64_t batch = job_.pass_batch_size();
  // All workers of shared work take examples from the whole data.
  if (examples_ == 0 || batch == 0 || job_.shares_work()) {
    return absl::OkStatus();
  }
  // An elastic job has as many replicas on each worker.
  const int64_t replicas = ReplicasPerWorker(job_, /*gpus=*/0);
  const int64_t share = examples_ / (workers * replicas);
  if (share >= batch) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "there are too few examples for another worker: batch_size is ", batch,
      ", but ", examples_, " examples over ", workers, " workers",
      replicas > 1 ? absl::StrCat(" of ", replicas, " replicas") : "", " are ",
      share,
      " each; stop the job and make batch_size smaller, or leave this "
      "worker out"));
}

absl::Status SettingsTable::CheckMirror(
    int worker, const MembershipTable::Member& mirror) const {
  if (job_.strategy.kind != StrategyKind::kMultiWorkerMirrored) {
    return absl::OkStatus();
  }
  if (worker >= job_.total_num_replicas) {
    return absl::NotFoundError(absl::StrCat(
        "worker ", worker,
        " has no mirror: strategy.kind is MULTI_WORKER_MIRRORED, and the "
        "chief's cluster has ",
        job_.total_num_replicas,
        " workers; give all processes the largest cluster from the start"));
  }
  if (mirror.state == MembershipTable::State::kAlive) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("worker ", worker, " joins once its mirror, ps ", worker,
                   ", has registered; retry meanwhile"));
}

absl::Status SettingsTable::Join(int worker, bool again,
                                 const MembershipTable::Member& mirror) {
  MutexLock lock(mutex_);
  if (!job_.elastic_workers) {
    return absl::NotFoundError(absl::StrCat(
        "the chief's cluster has no worker ", worker,
        "; give all processes the same cluster, or the job elastic_workers: "
        "true"));
  }
  if (worker < 0 || worker >= RunSettings::kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", worker, " of an elastic job must be below ",
                     RunSettings::kMaxWorkers));
  }
  // Otherwise the worker would retry for as long as it waits for a chief.
  if (over_) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker, " cannot join: ", closed_));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckMirror(worker, mirror));
  if (open_) {
    std::vector<int> workers = wanted_.workers;
    const auto place = std::lower_bound(workers.begin(), workers.end(), worker);
    if (place == workers.end() || *place != worker) {
      // A worker that was taken out registers again by itself, and must not
      // come back; so must not the process that a supervisor starts after one
      // that died before it heard. Another process was started on purpose.
      const bool untold = untold_.erase(worker) > 0;
      if (untold || (again && taken_out_.count(worker) > 0)) {
        return StoppedStatus("an operator took this worker out of the job",
                             /*hold=*/true);
      }
      LOCKSTEP_RETURN_IF_ERROR(CheckShares(std::ssize(workers) + 1));
      taken_out_.erase(worker);
      workers.insert(place, worker);
      SetWorkers(std::move(workers));
    }
    to_leave_.erase(worker);
  }
  return absl::UnavailableError(absl::StrCat(
      "worker ", worker, " joins at the next step boundary; retry meanwhile"));
}

absl::Status SettingsTable::CheckTakesPart(
    const TaskId& task, bool again, const RunSettings& in_effect,
    const MembershipTable::Member& mirror) {
  if (task.type == TaskType::kPs && again && mirror.left_out) {
    return absl::FailedPreconditionError(
        absl::StrCat("this mirror cannot take part: ", mirror.leave_reason,
                     "; mend the cause, and start the process again"));
  }
  if (!job_.elastic_workers || task.type != TaskType::kWorker) {
    return absl::OkStatus();
  }
  const auto among = [&task](const RunSettings& settings) {
    return std::binary_search(settings.workers.begin(), settings.workers.end(),
                              task.index);
  };
  // Both: a worker that is about to be taken out, or is not let in yet, has no
  // share of the data in the next step.
  if (among(wanted()) && among(in_effect)) return absl::OkStatus();
  return Join(task.index, again, mirror);
}

void SettingsTable::Leave(int worker, WhyOut why) {
  MutexLock lock(mutex_);
  // An operator's wish stays: the job may train again.
  if (!open_) return;
  const bool asked = to_leave_.erase(worker) > 0;
  if (why == WhyOut::kIfAsked && !asked) return;
  std::vector<int> workers = wanted_.workers;
  // A job keeps its last worker: without any it could not continue.
  if (workers.size() < 2) return;
  if (std::erase(workers, worker) == 0) return;
  if (asked || why == WhyOut::kLeft) taken_out_.insert(worker);
  if (asked && why != WhyOut::kLeft) untold_.insert(worker);
  SetWorkers(std::move(workers));
}

bool SettingsTable::IsToLeave(int worker) const {
  MutexLock lock(mutex_);
  return to_leave_.count(worker) > 0;
}

RunSettings SettingsTable::wanted() const {
  MutexLock lock(mutex_);
  return wanted_;
}

}  // namespace lockstep::chief
