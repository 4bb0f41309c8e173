#include "common/cluster/tf_config.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/tf_config_parser.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

// True for a cluster without a job, and for one job with task 0 only.
bool HasAtMostOneTask(const ClusterSpec& cluster) {
  if (cluster.empty()) return true;
  const std::string& job = cluster.jobs().begin()->first;
  return cluster.jobs().size() == 1 && cluster.NumTasks(job) == 1 &&
         cluster.IsDense(job);
}

bool NeedsNoTask(const TfConfig& config) {
  return !config.session_master.empty() || HasAtMostOneTask(config.cluster);
}

json ToJsonValue(const ClusterSpec::Tasks& tasks, bool dense) {
  json value = dense ? json::array() : json::object();
  for (const auto& [index, address] : tasks) {
    if (dense) {
      value.push_back(address);
    } else {
      value[std::to_string(index)] = address;
    }
  }
  return value;
}

}  // namespace

absl::StatusOr<TfConfig> ParseTfConfig(absl::string_view json,
                                       absl::string_view source) {
  return TfConfigParser(source).Parse(json);
}

absl::StatusOr<TfConfig> ReadTfConfig(absl::string_view json,
                                      absl::string_view source) {
  return TfConfigParser(source).Read(json);
}

absl::StatusOr<TfConfig> UnionOf(absl::Span<const TfConfig> configs) {
  if (configs.empty()) return TfConfig();
  std::vector<ClusterSpec> clusters;
  for (const TfConfig& config : configs) clusters.push_back(config.cluster);
  TfConfig joined = configs.front();
  LOCKSTEP_ASSIGN_OR_RETURN(joined.cluster, ClusterSpec::Union(clusters));
  return joined;
}

absl::StatusOr<std::string> MasterAddress(const TfConfig& config,
                                          absl::string_view task_type,
                                          int index) {
  if (!config.session_master.empty()) return config.session_master;
  if (HasAtMostOneTask(config.cluster)) return std::string();
  LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                            config.cluster.TaskAddress(task_type, index));
  if (config.rpc_layer.empty()) return address;
  return absl::StrCat(config.rpc_layer, "://", address);
}

absl::StatusOr<std::string> MasterAddress(const TfConfig& config) {
  if (!NeedsNoTask(config) && !config.task_index.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.source,
                     ": task.type and task.index are needed to name the "
                     "master; set them"));
  }
  return MasterAddress(config, config.task_type, config.task_index.value_or(0));
}

std::string ToJson(const ClusterSpec& cluster, TaskId task) {
  json jobs = json::object();
  for (const auto& [job, tasks] : cluster.jobs()) {
    jobs[job] = ToJsonValue(tasks, cluster.IsDense(job));
  }
  json document;
  document["cluster"] = std::move(jobs);
  document["task"]["type"] = std::string(TaskTypeName(task.type));
  document["task"]["index"] = task.index;
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace lockstep
