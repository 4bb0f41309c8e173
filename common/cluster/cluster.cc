#include "common/cluster/cluster.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_normalizer.h"
#include "common/text/excerpt.h"
#include "common/text/mistakes.h"

namespace lockstep {
namespace {

absl::Status ErrorAt(const TfConfig& config, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(config.source, ": ", text));
}

absl::StatusOr<TaskType> ReadType(const TfConfig& config) {
  if (config.task_type.empty()) {
    return ErrorAt(config,
                   "task.type is missing; set it to chief, worker, ps or "
                   "evaluator");
  }
  const absl::StatusOr<TaskType> type = ParseTaskType(config.task_type);
  if (type.ok()) return type;
  return ErrorAt(config,
                 absl::StrCat("task.type is ", Excerpt(config.task_type),
                              ", but must be chief, worker, ps or evaluator",
                              TaskTypeHint(config.task_type)));
}

absl::StatusOr<int> ReadIndex(const TfConfig& config) {
  if (!config.task_index.has_value()) {
    return ErrorAt(config, "task.index is missing; set it, counting from 0");
  }
  if (*config.task_index >= 0) return *config.task_index;
  return ErrorAt(config, absl::StrCat("task.index is ", *config.task_index,
                                      ", but must be 0 or more"));
}

// Largest number of tasks listed in a message.
constexpr size_t kShown = 8;

absl::string_view ProgramFor(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return "chief";
    case TaskType::kWorker:
      return "worker";
    case TaskType::kPs:
      return "ps_server";
    case TaskType::kEvaluator:
      return "worker --evaluate";
  }
  return "another program";
}

}  // namespace

absl::StatusOr<Cluster> Cluster::Make(const TfConfig& config,
                                      const ClusterOptions& options) {
  if (config.cluster.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(config.mistakes.status());
    return MakeLocal(config);
  }
  // Each check runs although an earlier one failed, so that one start reports
  // every mistake. Worker 0 stands in for a task that cannot be read.
  const absl::StatusOr<TaskType> type = ReadType(config);
  const absl::StatusOr<int> index = ReadIndex(config);
  const TaskId self = type.ok() && index.ok() ? TaskId{*type, *index}
                                              : TaskId{TaskType::kWorker, 0};
  // Normalization depends on the own task, see
  // Normalizer::MoveLonePsToItsIndex().
  absl::StatusOr<NormalizedCluster> normalized =
      NormalizeCluster(config, self, options.allow_port_zero);
  Mistakes mistakes = config.mistakes;
  mistakes.Add(type.status());
  mistakes.Add(index.status());
  mistakes.Add(normalized.status());
  LOCKSTEP_RETURN_IF_ERROR(mistakes.status());

  Cluster cluster;
  cluster.self_ = self;
  cluster.spec_ = std::move(normalized->spec);
  cluster.source_ = config.source;
  cluster.warnings_ = config.warnings;
  if (config.task_type != TaskTypeName(self.type)) {
    cluster.warnings_.push_back(
        absl::StrCat(config.source, ": task.type ", Excerpt(config.task_type),
                     " is taken for ", TaskTypeName(self.type)));
  }
  std::move(normalized->warnings.begin(), normalized->warnings.end(),
            std::back_inserter(cluster.warnings_));
  // An evaluator is often absent from cluster, since nothing calls it.
  if (self.type != TaskType::kEvaluator) {
    const absl::Status found = cluster.CheckTask(self);
    if (!found.ok()) {
      std::string text = absl::StrCat(
          found.message(), "; correct task, or add its address to cluster");
      // The task's job may be misspelt there, of which a warning tells.
      for (const std::string& warning : cluster.warnings_) {
        absl::StrAppend(&text, "; ", warning);
      }
      return absl::InvalidArgumentError(std::move(text));
    }
  }
  return cluster;
}

absl::StatusOr<Cluster> Cluster::MakeLocal(const TfConfig& config) {
  const bool is_worker =
      config.task_type.empty() || config.task_type == "worker";
  if (!is_worker || config.task_index.value_or(0) != 0) {
    return ErrorAt(config,
                   "there is a task but no cluster; add cluster, or remove "
                   "task (without a cluster it can only be worker 0)");
  }
  Cluster cluster;
  cluster.source_ = config.source;
  cluster.warnings_ = config.warnings;
  return cluster;
}

int Cluster::num_ps() const {
  // Like TensorFlow's ClusterResolver: an evaluator is outside of the cluster
  // that trains.
  return IsEvaluator() ? 0 : NumTasks(TaskType::kPs);
}

int Cluster::num_workers() const {
  if (IsEvaluator()) return 0;
  return IsLocal() ? 1 : NumTasks(TaskType::kWorker);
}

bool Cluster::has_evaluator() const {
  return IsEvaluator() || NumTasks(TaskType::kEvaluator) > 0;
}

std::vector<TaskId> Cluster::Tasks(TaskType type) const {
  std::vector<TaskId> tasks;
  for (int index : spec_.TaskIndices(TaskTypeName(type))) {
    tasks.push_back({type, index});
  }
  return tasks;
}

absl::StatusOr<std::string> Cluster::Address(TaskId task) const {
  const absl::Status found = CheckTask(task);
  // chief() names worker 0 if there is no chief, also if the cluster lists no
  // worker 0; this message tells the likely cause.
  if (!found.ok() && task == chief()) {
    return Error(
        "cluster has neither a chief nor a worker 0, so no task is known to "
        "run the chief; add cluster.chief (an operator whose workers are "
        "dynamic shows a task too little: switch that off)");
  }
  LOCKSTEP_RETURN_IF_ERROR(found);
  return spec_.TaskAddress(TaskTypeName(task.type), task.index);
}

TaskId Cluster::chief() const {
  const std::vector<TaskId> chiefs = Tasks(TaskType::kChief);
  return chiefs.empty() ? TaskId{TaskType::kWorker, 0} : chiefs.front();
}

absl::StatusOr<bool> Cluster::IsChief(TaskId task) const {
  if (!HasTask(task)) return CheckTask(task);
  return task == chief();
}

absl::StatusOr<int> Cluster::IdInCluster(TaskId task) const {
  if (task.type == TaskType::kPs) {
    return Error("a ps task has no place among those that compute");
  }
  if (!HasTask(task)) return CheckTask(task);
  switch (task.type) {
    case TaskType::kChief:
      return 0;
    case TaskType::kWorker:
      // The chief has rank 0, so workers follow it.
      return task.index + NumTasks(TaskType::kChief);
    default:
      return task.index;
  }
}

bool Cluster::HasMirrors() const {
  return !spec_.empty() && NumTasks(TaskType::kPs) == 0 &&
         NumTasks(TaskType::kChief) + NumTasks(TaskType::kWorker) > 0;
}

absl::StatusOr<Cluster> Cluster::WithMirrors() const {
  LOCKSTEP_RETURN_IF_ERROR(ValidateForAllReduce());
  if (!HasMirrors()) {
    return Error("cluster.ps is not empty, so workers have no mirrors");
  }
  ClusterSpec::Jobs jobs;
  // Every task that computes becomes worker `rank`, and the same address also
  // serves as ps `rank`.
  for (const TaskType type : {TaskType::kChief, TaskType::kWorker}) {
    for (const TaskId& task : Tasks(type)) {
      LOCKSTEP_ASSIGN_OR_RETURN(const int rank, IdInCluster(task));
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string address, Address(task));
      jobs[std::string(TaskTypeName(TaskType::kWorker))][rank] = address;
      jobs[std::string(TaskTypeName(TaskType::kPs))][rank] = address;
    }
  }
  for (const TaskId& task : Tasks(TaskType::kEvaluator)) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        jobs[std::string(TaskTypeName(TaskType::kEvaluator))][task.index],
        Address(task));
  }
  Cluster mirrored = *this;
  LOCKSTEP_ASSIGN_OR_RETURN(mirrored.spec_,
                            ClusterSpec::FromJobs(std::move(jobs)));
  mirrored.hosts_mirrors_ = true;
  // The evaluator keeps its own index: it has no rank among those that compute.
  if (!IsEvaluator()) {
    LOCKSTEP_ASSIGN_OR_RETURN(mirrored.self_.index, IdInCluster(self_));
    mirrored.self_.type = TaskType::kWorker;
  }
  return mirrored;
}

absl::StatusOr<Cluster> Cluster::SeenBy(TaskId task) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckTask(task));
  Cluster seen = *this;
  seen.self_ = task;
  return seen;
}

absl::StatusOr<int> Cluster::WorkerCount(TaskType type) const {
  if (type == TaskType::kPs) return Error("ps tasks do not count as workers");
  // An evaluator computes alone, outside of the replicas.
  if (type == TaskType::kEvaluator && has_evaluator()) return 1;
  if (IsLocal() && type == TaskType::kWorker) return 1;
  if (NumTasks(type) == 0) {
    return Error(absl::StrCat("cluster has no ", TaskTypeName(type), " task"));
  }
  return NumTasks(TaskType::kChief) + NumTasks(TaskType::kWorker);
}

absl::Status Cluster::ValidateForParameterServers() const {
  if (IsLocal()) {
    return Error(
        "there is no cluster; parameter servers need one: add cluster");
  }
  if (IsEvaluator()) {
    return Error("task is an evaluator, which takes no part in training");
  }
  // A misspelt type, which is a warning, leaves the one that was meant without
  // tasks.
  const std::string warnings =
      warnings_.empty() ? ""
                        : absl::StrCat("; ", absl::StrJoin(warnings_, "; "));
  if (num_ps() == 0) {
    return Error(
        absl::StrCat("cluster.ps is empty; add 1 or more ps", warnings));
  }
  if (num_workers() == 0) {
    return Error(absl::StrCat("cluster.worker is empty; add 1 or more workers",
                              warnings));
  }
  // A ps may see only itself, and a worker no other worker. Parts and shares of
  // the data are divided among tasks 0 to n - 1.
  if (self_.type != TaskType::kPs) {
    LOCKSTEP_RETURN_IF_ERROR(CheckDense(TaskType::kPs));
  }
  return IsChief() ? CheckDense(TaskType::kWorker) : absl::OkStatus();
}

absl::Status Cluster::CheckDense(TaskType type) const {
  const absl::string_view job = TaskTypeName(type);
  if (spec_.IsDense(job)) return absl::OkStatus();
  return Error(absl::StrCat("cluster.", job, " lacks tasks below ",
                            spec_.TaskIndices(job).back(), "; list every ", job,
                            " task, with indices from 0 on without a gap"));
}

absl::Status Cluster::ValidateForAllReduce() const {
  if (IsLocal()) return Error("there is no cluster; all-reduce needs one");
  if (self_.type == TaskType::kPs) {
    return Error("task is a ps, which takes no part in all-reduce");
  }
  for (const auto& [job, tasks] : spec_.jobs()) {
    // A ring needs every address; an operator with dynamic workers lists only
    // some.
    if (tasks.empty() || spec_.IsDense(job)) continue;
    return Error(absl::StrCat("cluster.", job, " lacks tasks below ",
                              tasks.rbegin()->first,
                              "; all-reduce needs to know all of them"));
  }
  if (has_chief() || has_evaluator() || num_workers() > 0) {
    return absl::OkStatus();
  }
  return Error("cluster has no chief, worker or evaluator; add a worker");
}

int Cluster::NumTasks(TaskType type) const {
  return spec_.NumTasks(TaskTypeName(type));
}

// A local process and an evaluator exist even if the cluster does not list
// them.
bool Cluster::HasTask(TaskId task) const {
  if (task == self_ && (IsLocal() || IsEvaluator())) return true;
  return CheckTask(task).ok();
}

absl::Status Cluster::CheckTask(TaskId task) const {
  const std::vector<int> indices = spec_.TaskIndices(TaskTypeName(task.type));
  if (std::binary_search(indices.begin(), indices.end(), task.index)) {
    return absl::OkStatus();
  }
  // subspan() cuts the length to the end of `indices`.
  const absl::Span<const int> shown =
      absl::MakeSpan(indices).subspan(0, kShown);
  return Error(absl::StrCat("cluster has no task ", task.ToString(),
                            "; cluster.", TaskTypeName(task.type),
                            indices.empty() ? " is empty" : " has the tasks ",
                            absl::StrJoin(shown, ", "),
                            indices.size() > kShown ? ", ..." : ""));
}

absl::Status Cluster::Error(absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat(source_, ": ", text));
}

absl::Status RequireTaskType(const Cluster& cluster,
                             absl::Span<const TaskType> allowed,
                             absl::string_view program) {
  const TaskType type = cluster.self().type;
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) {
    return absl::OkStatus();
  }
  // Where there are no servers a chief computes, too, as worker 0.
  const bool runs_chief = std::find(allowed.begin(), allowed.end(),
                                    TaskType::kChief) != allowed.end();
  if (runs_chief && type == TaskType::kWorker &&
      cluster.self() == cluster.chief()) {
    return absl::InvalidArgumentError(absl::StrCat(
        cluster.source(),
        ": the cluster has no ps, so its chief also computes: start worker "
        "with --job in place of chief"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(cluster.source(), ": task is ", cluster.self().ToString(),
                   ", which is not for ", program, "; start ", ProgramFor(type),
                   ", or correct task.type"));
}

}  // namespace lockstep
