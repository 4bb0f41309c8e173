#include "deploy/cli/config/config_make_command.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/tf_config.h"
#include "common/flags/flag_parser.h"
#include "common/text/excerpt.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

// Parses "worker:1" and checks that `cluster` has this task.
absl::StatusOr<TaskId> ParseTask(const std::string& text,
                                 const ClusterSpec& cluster) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const absl::StatusOr<TaskType> type = ParseTaskType(parts.first);
  TaskId task;
  if (!type.ok() || !absl::SimpleAtoi(parts.second, &task.index)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--task is ", Excerpt(text), ", but must be such as worker:0"));
  }
  task.type = *type;
  if (cluster.TaskAddress(TaskTypeName(task.type), task.index).ok()) {
    return task;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--task is ", Excerpt(text),
                   ", which the cluster does not have; count from 0"));
}

// Returns the JSON of the cluster without a task.
std::string ClusterOnly(const ClusterSpec& cluster) {
  nlohmann::json document =
      // ToJson() writes a TF_CONFIG, which always has a task.
      nlohmann::json::parse(ToJson(cluster, TaskId()), nullptr, false);
  document.erase("task");
  return document.dump();
}

}  // namespace

ConfigMakeCommand::ConfigMakeCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "make",
          "Writes a cluster as JSON, for `lockstep run` and `lockstep task`, "
          "or with --task the TF_CONFIG of one task.")) {
  app_.add_option("--ps", request_.ps,
                  "Parameter servers. 0: each task that computes has a "
                  "copy of the variables (strategy.kind "
                  "MULTI_WORKER_MIRRORED).")
      ->capture_default_str();
  app_.add_option("--workers", request_.workers, "Workers.")
      ->capture_default_str();
  app_.add_flag("--no_chief", no_chief_,
                "No chief task: worker 0 runs the chief.");
  app_.add_flag("--evaluator", request_.evaluator, "Add an evaluator.");
  CLI::Option* pattern =
      app_.add_option("--host_pattern,--host-pattern", request_.host_pattern,
                      "Host of each task; {task} and {index} stand for its "
                      "role and its index, as in "
                      "job-{task}-{index}.example.net.")
          ->capture_default_str();
  app_.add_option("--hosts", request_.hosts,
                  "Hosts by name, as node1,node2: task 0 of each role is on "
                  "the first, task 1 on the next, and so on in turn. An IPv6 "
                  "address stands in brackets.")
      ->delimiter(',')
      // A value such as [::1] would otherwise lose its brackets, as a list.
      ->allow_extra_args(false)
      ->excludes(pattern);
  app_.add_option("--port", request_.port,
                  "Port of the first task on each host; further tasks there "
                  "have the next ports. 0: `lockstep run` chooses them.")
      ->capture_default_str();
  app_.add_option("--task", task_,
                  "Write the TF_CONFIG of this task, such as worker:0.");
  app_.add_flag("--environment", environment_,
                "Write a line TF_CONFIG='...' for an environment file; needs "
                "--task.");
}

int ConfigMakeCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::StatusOr<std::string> text = Make();
  if (!text.ok()) {
    err << "lockstep config make: " << text.status().message() << "\n";
    return kUsageExitCode;
  }
  terminal.Print(*text);
  return 0;
}

absl::StatusOr<std::string> ConfigMakeCommand::Make() const {
  if (environment_ && task_.empty()) {
    return absl::InvalidArgumentError(
        "--environment needs a task; give --task, such as worker:0");
  }
  ClusterRequest request = request_;
  request.chief = !no_chief_;
  LOCKSTEP_ASSIGN_OR_RETURN(const ClusterSpec cluster, MakeCluster(request));
  if (task_.empty()) return PrettyCluster(ClusterOnly(cluster));
  LOCKSTEP_ASSIGN_OR_RETURN(const TaskId task, ParseTask(task_, cluster));
  const std::string json = ToJson(cluster, task);
  // Single quotes need no escapes: neither JSON nor a host's name has one.
  return environment_ ? absl::StrCat("TF_CONFIG='", json, "'\n")
                      : PrettyCluster(json);
}

}  // namespace lockstep::cli
