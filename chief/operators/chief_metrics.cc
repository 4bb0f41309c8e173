#include "chief/operators/chief_metrics.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/observe/progress_metrics.h"

namespace lockstep::chief {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels LabelsOf(const TaskId& task) {
  return {{"task", std::string(TaskTypeName(task.type))},
          {"index", absl::StrCat(task.index)}};
}

void AddJob(const StatusTable::View& job, std::vector<Metric>& metrics) {
  const auto gauge = [&](std::string name, std::string help, double value) {
    metrics.push_back(
        {std::move(name), std::move(help), Metric::Kind::kGauge, value, {}});
  };
  gauge("lockstep_job_state",
        "1 starting, 2 training, 3 finishing, 4 done, 5 failed, 6 stopped.",
        static_cast<double>(job.state));
  gauge("lockstep_global_step", "Steps that are committed.",
        static_cast<double>(job.global_step));
  gauge("lockstep_steps_per_second", "Over the last seconds.",
        job.steps_per_second);
  gauge("lockstep_training_seconds", "Since training began.",
        absl::ToDoubleSeconds(job.training_time));
  gauge("lockstep_checkpoint_step", "Of the newest checkpoint; -1: none.",
        static_cast<double>(job.last_checkpoint_step));
  gauge("lockstep_waits", "Parties that have waited for others for a while.",
        static_cast<double>(job.waits.size()));
  if (!job.evaluation.has_value()) return;
  // Figures of a user's evaluator are in the status alone.
  if (!job.evaluation->figures.empty()) return;
  gauge("lockstep_evaluation_step", "Of the newest checkpoint with a score.",
        static_cast<double>(job.evaluation->step));
  gauge("lockstep_evaluation_accuracy", "Of that checkpoint, 0 to 1.",
        job.evaluation->accuracy);
  gauge("lockstep_evaluation_loss", "Of that checkpoint.",
        job.evaluation->loss);
}

}  // namespace

std::vector<Metric> ChiefMetrics(
    const StatusTable::View& job,
    const std::vector<MembershipTable::Member>& members, double learning_rate) {
  std::vector<Metric> metrics;
  AddJob(job, metrics);
  metrics.push_back({"lockstep_learning_rate",
                     "Of the next step, as the schedule and operators have it.",
                     Metric::Kind::kGauge,
                     learning_rate,
                     {}});
  std::vector<WorkerProgress> workers;
  for (const MembershipTable::Member& member : members) {
    const Labels labels = LabelsOf(member.task);
    metrics.push_back({"lockstep_member_alive", "1 while it keeps its lease.",
                       Metric::Kind::kGauge,
                       member.state == MembershipTable::State::kAlive ? 1. : 0.,
                       labels});
    if (member.task.type == TaskType::kWorker && member.incarnation != 0) {
      workers.push_back({labels, member.progress});
    }
  }
  for (Metric& metric : ProgressMetrics(kReportedProgress, workers)) {
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

}  // namespace lockstep::chief
