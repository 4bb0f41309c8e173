#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

struct ClusterOptions {
  bool allow_port_zero = false;  // addresses whose port is chosen at start
};

// Cluster is one task's checked view of its cluster.
//
// A sparse document lists only the tasks that its reader must know, so counts
// are of visible tasks. An evaluator takes no part in training: it counts 0
// workers and 0 parameter servers, but can look up their addresses.
//
// Threads: immutable.
class Cluster {
 public:
  // An empty cluster is local: this process is worker 0 and alone.
  //
  //   kInvalidArgument  task.type or task.index is missing, unknown or not in
  //                     the cluster (an evaluator need not be); no cluster, and
  //                     a task other than worker 0; all that NormalizeCluster
  //                     refuses; `config.mistakes`, with all of these
  static absl::StatusOr<Cluster> Make(const TfConfig& config,
                                      const ClusterOptions& options = {});

  TaskId self() const { return self_; }
  bool IsLocal() const { return spec_.empty() && !IsEvaluator(); }

  // Jobs chief (never master), worker, ps and evaluator; checked addresses.
  const ClusterSpec& spec() const { return spec_; }

  // The origin of this cluster: "TF_CONFIG" or a file name.
  const std::string& source() const { return source_; }

  // Warnings of the document and of its checks, one sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  int num_ps() const;
  int num_workers() const;  // without the chief; 1 when local
  bool has_chief() const { return NumTasks(TaskType::kChief) > 0; }
  bool has_evaluator() const;

  // The visible tasks, by index.
  std::vector<TaskId> Tasks(TaskType type) const;

  // Returns "host:port".
  //
  //   kInvalidArgument  the task is not visible; for the chief, names the
  //                     missing entry
  absl::StatusOr<std::string> Address(TaskId task) const;

  // Returns the task whose process runs the chief: chief 0, or worker 0 if
  // there is no chief job.
  TaskId chief() const;
  bool WorkerHostsChief() const { return chief().type == TaskType::kWorker; }

  // True for the task that drives the steps; never for an evaluator.
  bool IsChief() const { return self_ == chief(); }

  // As IsChief(), for `task`.
  //
  //   kInvalidArgument  no such task
  absl::StatusOr<bool> IsChief(TaskId task) const;

  // Returns the place of a task among those that compute: the chief is 0,
  // worker i follows the chiefs. For an evaluator, returns its index.
  //
  //   kInvalidArgument  a parameter server, or no such task
  absl::StatusOr<int> IdInCluster(TaskId task) const;

  // True for a cluster of workers, or of a chief and workers, without a ps:
  // each of them has a mirror in its process.
  bool HasMirrors() const;

  // Returns the cluster as parameter servers see it. The tasks that compute are
  // worker 0 to n-1 by their IdInCluster(), so a chief task is worker 0 and
  // hosts the chief. Ps i is the mirror of worker i, at the same address.
  //
  //   kInvalidArgument  as ValidateForAllReduce(); there is a ps
  absl::StatusOr<Cluster> WithMirrors() const;

  // True for a cluster that WithMirrors() has made.
  bool hosts_mirrors() const { return hosts_mirrors_; }

  // Returns the cluster as another of its tasks sees it.
  //
  //   kInvalidArgument  no such task
  absl::StatusOr<Cluster> SeenBy(TaskId task) const;

  // Returns the number of tasks that count for `type`: chiefs and workers
  // together for either of them, evaluators for an evaluator.
  //
  //   kInvalidArgument  ps, or no task of that type
  absl::StatusOr<int> WorkerCount(TaskType type) const;

  // Checks that the cluster can train with parameter servers.
  //
  //   kInvalidArgument  local; no ps; no worker; this is an evaluator; a sparse
  //                     job of ps, unless this is a ps; a sparse job of
  //                     workers, if this runs the chief
  absl::Status ValidateForParameterServers() const;

  // Checks that the cluster can train with collectives.
  //
  //   kInvalidArgument  local; this is a ps; no chief, worker or evaluator; a
  //                     sparse job
  absl::Status ValidateForAllReduce() const;

 private:
  Cluster() = default;

  static absl::StatusOr<Cluster> MakeLocal(const TfConfig& config);

  bool IsEvaluator() const { return self_.type == TaskType::kEvaluator; }
  int NumTasks(TaskType type) const;
  bool HasTask(TaskId task) const;
  absl::Status CheckTask(TaskId task) const;
  // Checks that the indices of a job, which has tasks, have no gap.
  absl::Status CheckDense(TaskType type) const;
  absl::Status Error(absl::string_view text) const;

  TaskId self_;
  ClusterSpec spec_;
  std::string source_;
  std::vector<std::string> warnings_;
  bool hosts_mirrors_ = false;
};

// Refuses a task that belongs to another program. `program` is the name of the
// calling program.
//
//   kInvalidArgument  the task's type is not in `allowed`; names its program
absl::Status RequireTaskType(const Cluster& cluster,
                             absl::Span<const TaskType> allowed,
                             absl::string_view program);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_H_
