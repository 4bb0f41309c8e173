#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LAUNCH_PLAN_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LAUNCH_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/task_id.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/tasks/local_cluster.h"

namespace lockstep::cli {

// Options that the processes of one run share.
struct LaunchOptions {
  std::string program_dir{};  // directory of ps_server, chief and worker
  std::string job_file{};
  std::vector<std::string> settings{};  // "key=value" each
  std::string log_dir{};
  std::string state_dir{};
  std::string log_level = "info";
  // The log level of programs of the user; empty: LOCKSTEP_LOG_LEVEL as it is
  // in the environment.
  std::string own_log_level{};
  // With {role} and {index} in it; empty: tasks have no certificates.
  std::string tls_dir{};
  bool insecure = false;  // tasks have none, wherever they listen
  // Where the process that hosts the chief serves the job's page, "host:port";
  // empty: nowhere.
  std::string status_address{};
  int compute_threads = 1;  // per worker
  // Divided among tasks; empty: all that workers find.
  std::vector<std::string> gpus{};
  // Programs of the user in place of `worker` and `worker --evaluate`, with the
  // paths of their programs; empty: the built-in ones.
  UserCommand worker_command{};
  UserCommand evaluator_command{};
  // Flags for the chief until the job has begun; later restarts must not have
  // them.
  std::vector<std::string> beginning{};
};

// The start of one task's process.
struct TaskLaunch {
  TaskId task{};
  std::string program{};            // a path
  std::vector<std::string> args{};  // without the program's own name
  // Added until the job has begun; see Supervisor::begun().
  std::vector<std::string> begin_args{};
  std::map<std::string, std::string> begin_environment{};
  // TF_CONFIG, the GPU, and for a program of the user CommandEnvironment() and,
  // if it hosts the chief or a mirror, the options of those.
  std::map<std::string, std::string> environment{};
  std::string log_path{};
  std::string state_dir{};  // to be created first; empty: the task has none

  bool operator==(const TaskLaunch&) const = default;
};

// Returns the names of `count` GPUs as in CUDA_VISIBLE_DEVICES. `visible` is
// the current value of that variable: the names are the first of it; if it is
// empty, the first GPUs of the machine.
//
//   kInvalidArgument  `visible` names fewer
absl::StatusOr<std::vector<std::string>> ChooseGpus(int count,
                                                    absl::string_view visible);

// Returns the program of a task, and its command for the task: "worker
// --evaluate".
const char* ProgramName(TaskType type);
std::string ProgramCommand(TaskType type);

// Returns one launch per task, in the order of `cluster.tasks`. The job file
// goes to the process that hosts the chief. Workers and then evaluators get
// GPUs in turn, and share them if there are fewer.
std::vector<TaskLaunch> PlanLaunches(const LocalCluster& cluster,
                                     const LaunchOptions& options);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LAUNCH_PLAN_H_
