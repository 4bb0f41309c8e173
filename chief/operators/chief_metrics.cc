#include "chief/operators/chief_metrics.h"

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/observe/progress_metrics.h"

namespace lockstep::chief {
namespace {

MetricLabels LabelsOf(const TaskId& task) {
  return {{"task", std::string(TaskTypeName(task.type))},
          {"index", absl::StrCat(task.index)}};
}

void AddScore(const StatusTable::View& job, MetricFamilies& metrics) {
  // A user's evaluator may report any figures, which are only in the status.
  if (!job.evaluation.has_value() || !job.evaluation->figures.empty()) return;
  metrics.Gauge("lockstep_evaluation_step",
                "Step of the newest checkpoint that has a score.",
                static_cast<double>(job.evaluation->step));
  metrics.Gauge("lockstep_evaluation_accuracy", "Of that checkpoint, 0 to 1.",
                job.evaluation->accuracy);
  metrics.Gauge("lockstep_evaluation_loss", "Of that checkpoint.",
                job.evaluation->loss);
}

void AddCheckpoint(const StatusTable::View& job, MetricFamilies& metrics) {
  metrics.Gauge("lockstep_checkpoint_step",
                "Of the newest checkpoint; -1: none.",
                static_cast<double>(job.last_checkpoint_step));
  if (job.last_checkpoint_step < 0) return;
  metrics.Gauge(
      "lockstep_checkpoint_timestamp_seconds",
      "Unix time at which the newest checkpoint was written.",
      absl::ToDoubleSeconds(job.last_checkpoint_at - absl::UnixEpoch()));
}

// A job need not have an evaluator, and the cluster does not say if it has.
bool IsOfTheJob(const MembershipTable::Member& member) {
  return member.task.type != TaskType::kEvaluator || member.incarnation != 0;
}

// By task. Also those of none: Prometheus sees no increase in a counter that
// first appears with its first death.
// The deaths of each task, 0 for those that have not died. In the status the
// death of a chief is that of "chief".
std::map<TaskId, int64_t> DeathCounts(const MeasuredJob& measured) {
  const TaskId chief{TaskType::kChief, 0};
  std::map<TaskId, int64_t> counts = {{chief, 0}};
  for (const MembershipTable::Member& member : measured.members) {
    if (IsOfTheJob(member)) counts.try_emplace(member.task, 0);
  }
  for (const auto& [name, count] : measured.job.death_counts) {
    const auto task = name == "chief" ? chief : TaskId::FromString(name);
    if (task.has_value()) counts[*task] += count;
  }
  return counts;
}

void AddDeaths(const MeasuredJob& measured, MetricFamilies& metrics) {
  const StatusTable::View& job = measured.job;
  metrics.Counter("lockstep_recoveries_total",
                  "Times that a server was away, and the job went on.",
                  static_cast<double>(job.losses.recoveries));
  metrics.Counter("lockstep_steps_redone_total",
                  "Steps that began anew before their commit.",
                  static_cast<double>(job.losses.steps_redone));
  metrics.Counter("lockstep_steps_repeated_total",
                  "Committed steps that were lost and made again.",
                  static_cast<double>(job.losses.steps_repeated));
  metrics.Counter("lockstep_stood_still_seconds_total",
                  "Time that the job waited for servers that were away.",
                  absl::ToDoubleSeconds(job.losses.stood_still));
  for (const auto& [task, count] : DeathCounts(measured)) {
    metrics.Counter("lockstep_member_deaths_total",
                    "Deaths of this task that this chief has seen.",
                    static_cast<double>(count), LabelsOf(task));
  }
}

void AddJob(const MeasuredJob& measured, MetricFamilies& metrics) {
  const StatusTable::View& job = measured.job;
  metrics.Gauge(
      "lockstep_job_state",
      "1 starting, 2 training, 3 finishing, 4 done, 5 failed, 6 stopped.",
      static_cast<double>(job.state));
  metrics.Gauge("lockstep_job_paused", "1 while an operator pauses training.",
                job.settings.paused ? 1 : 0);
  metrics.Gauge("lockstep_global_step", "Steps that are committed.",
                static_cast<double>(job.global_step));
  metrics.Gauge("lockstep_train_steps", "Steps after which the job is done.",
                static_cast<double>(measured.train_steps));
  metrics.Gauge("lockstep_steps_per_second", "Over the last seconds.",
                job.steps_per_second);
  metrics.Gauge("lockstep_training_seconds", "Since training began.",
                absl::ToDoubleSeconds(job.training_time));
  metrics.Gauge("lockstep_learning_rate",
                "Of the next step, as the schedule and operators have it.",
                measured.learning_rate);
  metrics.Gauge("lockstep_waits",
                "Parties that have waited for others for a while.",
                static_cast<double>(job.waits.size()));
}

}  // namespace

MetricFamilies ChiefMetrics(const MeasuredJob& measured) {
  MetricFamilies metrics;
  AddJob(measured, metrics);
  // Without a directory a -1 would alert to checkpoints that are not asked for.
  if (measured.saves) AddCheckpoint(measured.job, metrics);
  AddScore(measured.job, metrics);
  AddDeaths(measured, metrics);
  std::vector<WorkerProgress> workers;
  for (const MembershipTable::Member& member : measured.members) {
    const MetricLabels labels = LabelsOf(member.task);
    if (!IsOfTheJob(member)) continue;
    metrics.Gauge("lockstep_member_alive", "1 while it keeps its lease.",
                  member.state == MembershipTable::State::kAlive ? 1. : 0.,
                  labels);
    // Before its first registration a member has no heartbeat.
    if (member.incarnation != 0) {
      metrics.Gauge("lockstep_member_heartbeat_age_seconds",
                    "Time since its newest heartbeat.",
                    absl::ToDoubleSeconds(measured.now - member.last_heartbeat),
                    labels);
    }
    if (member.task.type == TaskType::kWorker && member.incarnation != 0) {
      workers.push_back({labels, member.progress});
    }
  }
  metrics.Add(ProgressMetrics(kReportedProgress, workers));
  return metrics;
}

}  // namespace lockstep::chief
