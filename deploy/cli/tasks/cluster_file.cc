#include "deploy/cli/tasks/cluster_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/tf_config.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {

absl::StatusOr<Cluster> ParseClusterFile(absl::string_view json,
                                         absl::string_view source) {
  LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, ReadTfConfig(json, source));
  // A cluster of the wrong type has a mistake of its own, which says so.
  if (config.cluster.empty() && config.mistakes.status().ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source,
                     ": there is no cluster; write {\"cluster\": {\"ps\": "
                     "[\"localhost:0\"], \"worker\": [\"localhost:0\"]}}"));
  }
  const bool has_chief =
      config.cluster.NumTasks("chief") + config.cluster.NumTasks("master") > 0;
  config.task_type = has_chief ? "chief" : "worker";
  config.task_index = 0;
  return Cluster::Make(config, {.allow_port_zero = true});
}

absl::StatusOr<Cluster> ReadClusterFile(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFlagFile("--cluster", path));
  return ParseClusterFile(text, path);
}

std::string WarningLines(const std::vector<std::string>& warnings) {
  std::string lines;
  for (const std::string& warning : warnings) {
    absl::StrAppend(&lines, "warning: ", warning, "\n");
  }
  return lines;
}

}  // namespace lockstep::cli
