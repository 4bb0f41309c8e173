#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "common/cluster/cluster.h"
#include "common/cluster/tf_config.h"

namespace lockstep {
namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

// The TF_CONFIG written for a task must be read as the same cluster.
void CheckRoundTrip(const ClusterSpec& spec, TaskId task) {
  const absl::StatusOr<TfConfig> again =
      ParseTfConfig(ToJson(spec, task), "again");
  Require(again.ok());
  Require(again->cluster == spec);
  Require(again->task_type == TaskTypeName(task.type));
  Require(again->task_index == task.index);
}

void CheckCluster(const Cluster& cluster) {
  CheckRoundTrip(cluster.spec(), cluster.self());
  Require(!cluster.spec().jobs().contains("master"));
  Require(!cluster.IsChief() || cluster.IsChief(cluster.chief()).ok());
  for (TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs,
                        TaskType::kEvaluator}) {
    for (TaskId task : cluster.Tasks(type)) Require(cluster.Address(task).ok());
    cluster.WorkerCount(type).status().IgnoreError();
  }
  cluster.IdInCluster(cluster.self()).status().IgnoreError();
  cluster.ValidateForParameterServers().IgnoreError();
  cluster.ValidateForAllReduce().IgnoreError();
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<lockstep::TfConfig> config =
      lockstep::ParseTfConfig(text, "fuzz");
  if (!config.ok()) return 0;

  lockstep::CheckRoundTrip(config->cluster, {lockstep::TaskType::kWorker, 0});
  for (bool allow_port_zero : {false, true}) {
    const absl::StatusOr<lockstep::Cluster> cluster =
        lockstep::Cluster::Make(*config, {.allow_port_zero = allow_port_zero});
    if (cluster.ok()) lockstep::CheckCluster(*cluster);
  }
  return 0;
}
