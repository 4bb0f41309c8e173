#include "strategy/workers/workers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/cluster/tf_config.h"
#include "common/cluster/tf_config_loader.h"
#include "common/collective/local_group.h"
#include "common/program/main_support.h"
#include "strategy/nccl/nccl_group.h"
#include "strategy/workers/network_group.h"

namespace lockstep::strategy {
namespace {

// The cluster of TF_CONFIG; local if that is not set.
absl::StatusOr<Cluster> GivenCluster(const WorkersOptions& options) {
  absl::StatusOr<TfConfig> config = LoadTfConfig(options.tf_config);
  if (absl::IsNotFound(config.status()) && options.tf_config.empty()) {
    config = TfConfig();  // no environment variable: a program of one process
  }
  LOCKSTEP_RETURN_IF_ERROR(config.status());
  return Cluster::Make(*config);
}

}  // namespace

std::string NameOf(Implementation implementation) {
  switch (implementation) {
    case Implementation::kAuto:
      return "AUTO";
    case Implementation::kDirect:
      return "DIRECT";
    case Implementation::kNccl:
      return "NCCL";
  }
  return "unknown";
}

absl::StatusOr<bool> KeepsOutputs(const WorkersOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Cluster given, GivenCluster(options));
  return given.IsLocal() || given.self().type == TaskType::kEvaluator ||
         given.self() == TaskId{TaskType::kWorker, 0};
}

absl::StatusOr<std::unique_ptr<Collective>> JoinWorkers(
    const WorkersOptions& options, const std::string& purpose) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Cluster given, GivenCluster(options));
  // Before StartProcess(): a program of one process needs no certificates. An
  // evaluator is one: it reads checkpoints, and no task calls it.
  if (given.IsLocal() || given.self().type == TaskType::kEvaluator) {
    return std::move(MakeLocalGroup(1, options.timeout).front());
  }
  if (options.group_beside_servers && given.num_ps() > 0 &&
      given.WorkerHostsChief()) {
    return absl::InvalidArgumentError(absl::StrCat(
        given.source(),
        ": group_beside_servers is true, but the cluster has no chief task: "
        "worker 0 has the chief of the job at the address that the group "
        "needs; add \"chief\": [\"HOST:PORT\"] to the cluster"));
  }
  CommonFlags flags;
  flags.tf_config = options.tf_config;
  flags.insecure = OptionOfProgram("", "LOCKSTEP_INSECURE") == "1";
  flags.tls_dir = OptionOfProgram(options.tls_dir, "LOCKSTEP_TLS_DIR");
  flags.log_level = LogLevelOfProgram(options.log_level);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Cluster cluster,
      StartProcess(flags, {TaskType::kWorker}, "a program with a strategy"));
  NetworkGroup::Options group;
  group.rank = cluster.self().index;
  for (const TaskId& task : cluster.Tasks(TaskType::kWorker)) {
    if (task.index != static_cast<int>(group.addresses.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          cluster.source(), ": cluster.worker lacks task ",
          group.addresses.size(),
          "; each member of a group needs to know the address of all"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(group.addresses.emplace_back(),
                              cluster.Address(task));
  }
  // Members compare their purposes, so two implementations do not meet.
  group.purpose =
      absl::StrCat(purpose, ", communication ", NameOf(options.implementation));
  group.timeout = options.timeout;
  group.join_timeout = options.join_timeout;
  group.shared_memory = options.shared_memory;
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<NetworkGroup> joined,
                            NetworkGroup::Join(group));
  if (options.implementation == Implementation::kDirect) return joined;
  NcclGroup::Options nccl;
  nccl.required = options.implementation == Implementation::kNccl;
  nccl.gpu = options.gpu;
  nccl.timeout = options.timeout;
  return NcclGroup::Make(std::move(joined), nccl);
}

}  // namespace lockstep::strategy
