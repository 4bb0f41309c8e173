#include "deploy/lockstep/launch_plan.h"

#include "absl/strings/str_cat.h"
#include "common/cluster/tf_config.h"

namespace lockstep {
namespace {

using Args = std::vector<std::string>;

// "worker-0": for file names.
std::string FileName(TaskId task) {
  return absl::StrCat(TaskTypeName(task.type), "-", task.index);
}

void AddJobArgs(const LaunchOptions& options, Args& args) {
  args.insert(args.end(), {"--job", options.job_file});
  for (const std::string& setting : options.settings) {
    args.insert(args.end(), {"--set", setting});
  }
}

Args ArgsOf(TaskId task, bool hosts_chief, const std::string& state_dir,
            const LaunchOptions& options) {
  Args args = {"--log_level", options.log_level};
  if (task.type == TaskType::kPs) {
    args.insert(args.end(), {"--state_dir", state_dir});
  }
  if (task.type == TaskType::kEvaluator) args.push_back("--evaluate");
  if (task.type == TaskType::kWorker || task.type == TaskType::kEvaluator) {
    args.insert(args.end(),
                {"--compute_threads", absl::StrCat(options.compute_threads)});
  }
  if (hosts_chief) AddJobArgs(options, args);
  return args;
}

}  // namespace

const char* ProgramName(TaskType type) {
  switch (type) {
    case TaskType::kPs:
      return "ps_server";
    case TaskType::kChief:
      return "chief";
    case TaskType::kWorker:
    case TaskType::kEvaluator:
      break;
  }
  return "worker";
}

std::string ProgramCommand(TaskType type) {
  return absl::StrCat(ProgramName(type),
                      type == TaskType::kEvaluator ? " --evaluate" : "");
}

std::vector<TaskLaunch> PlanLaunches(const LocalCluster& cluster,
                                     const LaunchOptions& options) {
  std::vector<TaskLaunch> launches;
  for (const TaskId& task : cluster.tasks) {
    TaskLaunch launch;
    launch.task = task;
    launch.program =
        absl::StrCat(options.program_dir, "/", ProgramName(task.type));
    launch.tf_config = ToJson(cluster.spec, task);
    launch.log_path =
        absl::StrCat(options.log_dir, "/", FileName(task), ".log");
    if (task.type == TaskType::kPs) {
      launch.state_dir = absl::StrCat(options.state_dir, "/", FileName(task));
    }
    launch.args =
        ArgsOf(task, task == cluster.chief, launch.state_dir, options);
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace lockstep
