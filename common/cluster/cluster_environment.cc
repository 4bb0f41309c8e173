#include "common/cluster/cluster_environment.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/json/bounded_json.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr char kTfConfig[] = "TF_CONFIG";
constexpr char kClusterSpec[] = "CLUSTER_SPEC";

// A machine pool of Vertex AI and its role in a parameter-server job.
struct Pool {
  const char* name;
  const char* job;
};
constexpr Pool kPools[] = {{"workerpool0", "chief"},
                           {"workerpool1", "worker"},
                           {"workerpool2", "ps"},
                           {"workerpool3", "evaluator"}};

std::vector<std::string> ValuesOf(const Environment& variables,
                                  absl::string_view name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : variables) {
    if (key == name) values.push_back(value);
  }
  return values;
}

absl::optional<std::string> ValueOf(const Environment& variables,
                                    absl::string_view name) {
  std::vector<std::string> values = ValuesOf(variables, name);
  if (values.empty()) return absl::nullopt;
  // In a file that sets a name twice, the last setting wins, as in a shell.
  return std::move(values.back());
}

absl::StatusOr<TfConfig> ReadValues(const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (value == values.front()) continue;
    return absl::InvalidArgumentError(
        "TF_CONFIG is set more than once, with different values; remove all "
        "but one (some operators append theirs to that of the container)");
  }
  return ReadTfConfig(values.front(), kTfConfig);
}

// Renames pools to jobs, with a warning.
//
//   kInvalidArgument  a pool beside the job that it stands for
absl::Status RenamePools(json& document, std::vector<std::string>& warnings) {
  json& cluster = document["cluster"];
  for (const Pool& pool : kPools) {
    const auto found = cluster.find(pool.name);
    if (found == cluster.end()) continue;
    if (cluster.contains(pool.job)) {
      return absl::InvalidArgumentError(absl::StrCat(
          kClusterSpec, " has both cluster.", pool.name, " and cluster.",
          pool.job, ", which mean the same tasks; leave one out"));
    }
    // Moved out first: adding a key may move the elements of the object.
    json tasks = std::move(*found);
    cluster.erase(found);
    cluster[pool.job] = std::move(tasks);
    warnings.push_back(absl::StrCat(kClusterSpec, ": cluster.", pool.name,
                                    " is taken for cluster.", pool.job));
  }
  if (!document.contains("task") || !document["task"].is_object()) {
    return absl::OkStatus();
  }
  json& task = document["task"];
  for (const Pool& pool : kPools) {
    if (task.value("type", json()) == pool.name) task["type"] = pool.job;
  }
  return absl::OkStatus();
}

// Joins {"worker": [...]} and the task beside it into one document.
absl::StatusOr<json> WrapJobs(json jobs, const Environment& variables) {
  const auto job_name = ValueOf(variables, "JOB_NAME");
  const auto task_index = ValueOf(variables, "TASK_INDEX");
  if (!job_name.has_value() || !task_index.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kClusterSpec, " has jobs alone, and ",
        job_name.has_value() ? "TASK_INDEX" : "JOB_NAME",
        " is not set, so this process's task is not known; set TF_CONFIG, or "
        "JOB_NAME and TASK_INDEX"));
  }
  json document;
  document["cluster"] = std::move(jobs);
  document["task"]["type"] = *job_name;
  // The parser also accepts an index that is a string.
  document["task"]["index"] = *task_index;
  return document;
}

absl::StatusOr<TfConfig> ReadClusterSpec(const std::string& value,
                                         const Environment& variables) {
  LOCKSTEP_ASSIGN_OR_RETURN(json document,
                            ParseBoundedJson(value, kClusterSpec));
  std::vector<std::string> warnings = {absl::StrCat(
      kTfConfig, " is not set; ", kClusterSpec, " is taken instead")};
  if (document.is_object() && !document.contains("cluster")) {
    LOCKSTEP_ASSIGN_OR_RETURN(document,
                              WrapJobs(std::move(document), variables));
  }
  if (document.is_object() && document["cluster"].is_object()) {
    LOCKSTEP_RETURN_IF_ERROR(RenamePools(document, warnings));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      TfConfig config,
      ReadTfConfig(
          document.dump(-1, ' ', false, json::error_handler_t::replace),
          kClusterSpec));
  config.warnings.insert(config.warnings.begin(), warnings.begin(),
                         warnings.end());
  return config;
}

absl::Status NotSet(const Environment& variables, absl::string_view file) {
  std::string text = file.empty() ? "" : absl::StrCat(file, ": ");
  absl::StrAppend(&text, kTfConfig, " is not set; ");
  for (const auto& [name, value] : variables) {
    // A variable "tf_config" is a likely mistake, which "not set" alone would
    // hide.
    const std::string upper = absl::AsciiStrToUpper(name);
    if (upper != kTfConfig && upper != kClusterSpec) continue;
    absl::StrAppend(&text, name, " is: write its name in capitals");
    return absl::NotFoundError(text);
  }
  absl::StrAppend(&text,
                  file.empty() ? "set it, or give --tf_config FILE"
                               : "add a line TF_CONFIG='...'",
                  " (`lockstep config make --task ROLE:INDEX` writes one)");
  if (file.empty()) {
    absl::StrAppend(&text,
                    "; for a program of yours `lockstep run ... -- "
                    "PROGRAM` sets it, and in Python tf_config=FILE names "
                    "a file");
  }
  return absl::NotFoundError(text);
}

}  // namespace

absl::StatusOr<TfConfig> TfConfigOfEnvironment(const Environment& variables,
                                               absl::string_view file) {
  const std::vector<std::string> tf_configs = ValuesOf(variables, kTfConfig);
  if (!tf_configs.empty()) return ReadValues(tf_configs);
  const auto cluster_spec = ValueOf(variables, kClusterSpec);
  if (!cluster_spec.has_value()) return NotSet(variables, file);
  return ReadClusterSpec(*cluster_spec, variables);
}

}  // namespace lockstep
