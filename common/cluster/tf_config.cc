#include "common/cluster/tf_config.h"

#include <utility>

#include "common/cluster/tf_config_parser.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

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

std::string ToJson(const ClusterSpec& cluster, TaskId task) {
  json jobs = json::object();
  for (const auto& [job, tasks] : cluster.jobs()) {
    jobs[job] = ToJsonValue(tasks, cluster.IsDense(job));
  }
  json document;
  document["cluster"] = std::move(jobs);
  document["task"]["type"] = std::string(TaskTypeName(task.type));
  document["task"]["index"] = task.index;
  // Replaces bytes that are not UTF-8: dump() would throw.
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace lockstep
