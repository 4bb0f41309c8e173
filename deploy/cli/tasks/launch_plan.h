#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_LAUNCH_PLAN_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_LAUNCH_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/task_id.h"
#include "deploy/cli/tasks/local_cluster.h"

namespace lockstep {

// What the processes of one run share.
struct LaunchOptions {
  std::string program_dir{};  // where ps_server, chief and worker are
  std::string job_file{};
  std::vector<std::string> settings{};  // "key=value" each
  std::string log_dir{};
  std::string state_dir{};
  std::string log_level = "info";
  int compute_threads = 1;          // of each worker
  std::vector<std::string> gpus{};  // shared out; empty: whatever workers find
  // Flags of the chief's first start, which it must not be started again with.
  std::vector<std::string> beginning{};
};

// How to start the process of one task.
struct TaskLaunch {
  TaskId task{};
  std::string program{};                  // a path
  std::vector<std::string> args{};        // without the program's own name
  std::vector<std::string> first_args{};  // likewise, of the first start alone
  std::map<std::string, std::string> environment{};  // TF_CONFIG and the GPU
  std::string log_path{};
  std::string state_dir{};  // to be made first; empty when the task has none

  bool operator==(const TaskLaunch&) const = default;
};

// Names `count` GPUs as CUDA_VISIBLE_DEVICES does. `visible` is what that is
// already, empty where it is not set: then the first of the machine, else the
// first of these.
//
//   kInvalidArgument  `visible` names fewer
absl::StatusOr<std::vector<std::string>> ChooseGpus(int count,
                                                    absl::string_view visible);

// The program of a task, and how it is called for the task: "worker
// --evaluate".
const char* ProgramName(TaskType type);
std::string ProgramCommand(TaskType type);

// One launch per task, in the order of `cluster.tasks`. The job file goes to
// the process that hosts the chief. Of GPUs, workers and then evaluators get
// one after the other, and share them if there are fewer.
std::vector<TaskLaunch> PlanLaunches(const LocalCluster& cluster,
                                     const LaunchOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_LAUNCH_PLAN_H_
