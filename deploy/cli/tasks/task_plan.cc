#include "deploy/cli/tasks/task_plan.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/tf_config.h"
#include "common/text/excerpt.h"
#include "deploy/cli/tasks/launch_plan.h"

namespace lockstep::cli {
namespace {

bool IsIndex(absl::string_view text) {
  // Nine digits fit into an int.
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// True if `text` is safe as a directory's name.
bool IsJobName(absl::string_view name) {
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
         });
}

absl::StatusOr<int> ParseIndex(absl::string_view digits) {
  int index = 0;
  if (absl::SimpleAtoi(digits, &index) && index <= ClusterSpec::kMaxTaskIndex) {
    return index;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the index ", Excerpt(digits), " is above ", ClusterSpec::kMaxTaskIndex));
}

// `mirrors`: the cluster has no ps, so that its chief task computes, too.
absl::Status CheckCommand(const TaskId& task, bool mirrors) {
  if (task.type == TaskType::kWorker || task.type == TaskType::kEvaluator ||
      (mirrors && task.type == TaskType::kChief)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a command of yours can be a worker or an evaluator, not ",
      TaskTypeName(task.type), "; flags of its program begin with '-'"));
}

}  // namespace

absl::StatusOr<TaskInstance> ParseTaskInstance(absl::string_view role,
                                               absl::string_view instance) {
  TaskInstance result;
  LOCKSTEP_ASSIGN_OR_RETURN(result.task.type, ParseTaskType(role));
  absl::string_view job = instance;
  const size_t dot = instance.rfind('.');
  // A dot before other text is a part of the job's name.
  if (dot != absl::string_view::npos && IsIndex(instance.substr(dot + 1))) {
    job = instance.substr(0, dot);
    LOCKSTEP_ASSIGN_OR_RETURN(result.task.index,
                              ParseIndex(instance.substr(dot + 1)));
  }
  if (!IsJobName(job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the instance ", Excerpt(instance),
                     " names no job; write JOB or JOB.INDEX, with letters, "
                     "digits, '_', '-' and '.' in JOB"));
  }
  result.job = std::string(job);
  return result;
}

absl::StatusOr<int> IndexOfPodName(absl::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == absl::string_view::npos || !IsIndex(name.substr(dash + 1))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the pod's name ", Excerpt(name),
        " does not end in '-' and an index; run it in a StatefulSet or an "
        "indexed Job, or give JOB.INDEX"));
  }
  return ParseIndex(name.substr(dash + 1));
}

absl::StatusOr<TaskPlan> PlanTask(const TaskPlanOptions& options) {
  const TaskId task = options.instance.task;
  LOCKSTEP_ASSIGN_OR_RETURN(
      TfConfig config,
      ReadTfConfig(options.cluster_json, options.cluster_path));
  config.task_type = std::string(TaskTypeName(task.type));
  config.task_index = task.index;
  LOCKSTEP_ASSIGN_OR_RETURN(const Cluster cluster, Cluster::Make(config));
  const bool mirrors =
      cluster.HasMirrors() && task.type != TaskType::kEvaluator;
  TaskPlan plan;
  if (!options.command.empty()) {
    if (!options.more_args.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Excerpt(options.more_args.front()),
          " stands before --, but is no flag of `lockstep task`; flags of your "
          "own program stand after --"));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckCommand(task, mirrors));
    if (cluster.IsChief()) plan.environment["LOCKSTEP_JOB"] = options.job_path;
    // A program without a mirror keeps no state.
    if (mirrors && !options.state_dir.empty()) {
      plan.environment["LOCKSTEP_STATE_DIR"] = options.state_dir;
    }
    plan.program = options.command.front();
    plan.args.assign(options.command.begin() + 1, options.command.end());
    plan.tf_config = ToJson(cluster.spec(), task);
    return plan;
  }
  plan.program =
      absl::StrCat(options.program_dir, "/",
                   ProgramName(mirrors ? TaskType::kWorker : task.type));
  plan.tf_config = ToJson(cluster.spec(), task);
  if (task.type == TaskType::kEvaluator) plan.args.push_back("--evaluate");
  if (cluster.IsChief()) {
    plan.args.insert(plan.args.end(), {"--job", options.job_path});
  }
  // A flag of the operator's own comes before the service manager's directory.
  const bool given = std::any_of(
      options.more_args.begin(), options.more_args.end(),
      [](const std::string& arg) {
        return arg == "--state_dir" || arg.starts_with("--state_dir=");
      });
  if ((task.type == TaskType::kPs || mirrors) && !options.state_dir.empty() &&
      !given) {
    plan.args.insert(plan.args.end(), {"--state_dir", options.state_dir});
  }
  plan.args.insert(plan.args.end(), options.more_args.begin(),
                   options.more_args.end());
  return plan;
}

}  // namespace lockstep::cli
