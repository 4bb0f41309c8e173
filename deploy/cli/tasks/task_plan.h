#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_TASK_PLAN_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_TASK_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/task_id.h"
#include "deploy/cli/command/user_command.h"

namespace lockstep::cli {

// One task of a job, as a service manager names it: "fashion.1" is task 1 of
// the job whose configuration is called "fashion", and "fashion" its task 0.
struct TaskInstance {
  std::string job;
  TaskId task;

  bool operator==(const TaskInstance&) const = default;
};

//   kInvalidArgument  an unknown role; an instance without a job, or with other
//                     characters than letters, digits, '_', '-' and '.'; an
//                     index above ClusterSpec::kMaxTaskIndex
absl::StatusOr<TaskInstance> ParseTaskInstance(absl::string_view role,
                                               absl::string_view instance);

// Returns 1 for the pod "fashion-1": the number after the last '-'.
//
//   kInvalidArgument  no number stands there
absl::StatusOr<int> IndexOfPodName(absl::string_view name);

// The program of one task, with its arguments.
struct TaskPlan {
  std::string program;            // a path
  std::vector<std::string> args;  // without the program's own name
  std::string tf_config;          // for its environment
  // Further variables of its environment, for a program of the user that hosts
  // the chief or a mirror.
  std::map<std::string, std::string> environment{};

  bool operator==(const TaskPlan&) const = default;
};

struct TaskPlanOptions {
  TaskInstance instance{};
  std::string cluster_json{};  // the text of `cluster_path`
  std::string cluster_path{};
  std::string job_path{};   // for the task that hosts the chief
  std::string state_dir{};  // for a ps; empty: the program's own default
  std::string program_dir{};
  std::vector<std::string> more_args{};  // at the end
  // The user's program in place of a worker's or evaluator's, with the path of
  // its program; empty: the built-in one.
  UserCommand command{};
};

//   kInvalidArgument  as Cluster::Make, for the document with this task in
//                     place of its own; a command for another role, or beside
//                     other arguments
absl::StatusOr<TaskPlan> PlanTask(const TaskPlanOptions& options);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_TASK_PLAN_H_
