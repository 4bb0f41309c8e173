#include "chief/job_identity.h"

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"

namespace lockstep::chief {

std::vector<TaskId> MembersOf(const Cluster& cluster) {
  std::vector<TaskId> tasks = cluster.Tasks(TaskType::kPs);
  for (const TaskId& task : cluster.Tasks(TaskType::kWorker)) {
    tasks.push_back(task);
  }
  // An evaluator may join even if the cluster has none.
  tasks.push_back({TaskType::kEvaluator, 0});
  return tasks;
}

std::string MakeJobId(const JobConfig& job, const Cluster& cluster) {
  // Settings that may change between runs are left out: a job with another
  // learning rate is the same one.
  Fingerprint fingerprint;
  fingerprint.Add(job.name).Add(job.seed).Add(job.model.kind);
  for (const TaskId& task : MembersOf(cluster)) {
    // The workers of an elastic job may change without making it another job.
    if (job.elastic_workers && task.type == TaskType::kWorker) continue;
    fingerprint.Add(task.ToKey()).Add(cluster.Address(task).value_or(""));
  }
  return absl::StrCat(job.name, "-",
                      absl::Hex(fingerprint.value(), absl::kZeroPad16));
}

}  // namespace lockstep::chief
