#include "deploy/cli/tasks/launch_plan.h"

#include <stdlib.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/cluster/tf_config.h"

namespace lockstep::cli {
namespace {

using Args = std::vector<std::string>;

// Returns "worker-0", for file names.
std::string FileName(TaskId task) {
  return absl::StrCat(TaskTypeName(task.type), "-", task.index);
}

void AddJobArgs(const LaunchOptions& options, Args& args) {
  args.insert(args.end(), {"--job", options.job_file});
  if (!options.status_address.empty()) {
    args.insert(args.end(), {"--status_address", options.status_address});
  }
  for (const std::string& setting : options.settings) {
    args.insert(args.end(), {"--set", setting});
  }
}

Args ArgsOf(TaskId task, bool hosts_chief, bool computes,
            const std::string& state_dir, const LaunchOptions& options) {
  Args args = {"--log_level", options.log_level};
  if (!options.tls_dir.empty()) {
    args.insert(args.end(), {"--tls_dir", options.tls_dir});
  }
  if (options.insecure) args.push_back("--insecure");
  if (!state_dir.empty()) {
    args.insert(args.end(), {"--state_dir", state_dir});
  }
  if (task.type == TaskType::kEvaluator) args.push_back("--evaluate");
  if (computes) {
    args.insert(args.end(),
                {"--compute_threads", absl::StrCat(options.compute_threads)});
    // Without the flag a worker that finds no GPU would take the CPU.
    if (!options.gpus.empty()) args.insert(args.end(), {"--device", "cuda"});
  }
  if (hosts_chief) AddJobArgs(options, args);
  return args;
}

// Returns the GPU of the task; nothing if it uses none, or may choose.
std::string GpuOf(TaskId task, const LocalCluster& cluster,
                  const LaunchOptions& options) {
  if (options.gpus.empty()) return "";
  const bool chief_computes =
      cluster.hosts_mirrors && cluster.chief.type == TaskType::kChief;
  size_t turn = static_cast<size_t>(task.index);
  switch (task.type) {
    case TaskType::kPs:
      return "";
    case TaskType::kChief:
      if (!chief_computes) return "";
      break;
    case TaskType::kWorker:
      // A chief that computes has the first turn.
      if (chief_computes) ++turn;
      break;
    case TaskType::kEvaluator:
      // Evaluators go on where the workers' turns end.
      turn += static_cast<size_t>(cluster.num_workers);
      break;
  }
  return options.gpus[turn % options.gpus.size()];
}

const UserCommand& CommandOf(TaskId task, bool computing_chief,
                             const LaunchOptions& options) {
  static const UserCommand kBuiltIn;
  // Under a chief that computes, too: see LocalCluster::hosts_mirrors.
  if (task.type == TaskType::kWorker || computing_chief) {
    return options.worker_command;
  }
  if (task.type == TaskType::kEvaluator) return options.evaluator_command;
  return kBuiltIn;
}

// Replaces the built-in program of a task by the user's.
void UseCommand(const UserCommand& command, const LaunchOptions& options,
                TaskLaunch& launch) {
  launch.program = command.front();
  launch.args.assign(command.begin() + 1, command.end());
  // A task that hosts a mirror has the certificate of a worker, also a chief:
  // its session fills in which.
  const std::string tls_dir =
      !launch.state_dir.empty()
          ? options.tls_dir
          : absl::StrReplaceAll(options.tls_dir,
                                {{"{role}", TaskTypeName(launch.task.type)},
                                 {"{index}", absl::StrCat(launch.task.index)}});
  launch.environment.merge(
      CommandEnvironment(options.compute_threads, tls_dir, getenv));
  if (options.insecure) launch.environment["LOCKSTEP_INSECURE"] = "1";
  if (!options.own_log_level.empty()) {
    launch.environment["LOCKSTEP_LOG_LEVEL"] = options.own_log_level;
  }
  if (!launch.state_dir.empty()) {
    launch.environment["LOCKSTEP_STATE_DIR"] = launch.state_dir;
  }
}

// The same of a program whose process hosts the chief.
void HostChief(const LaunchOptions& options, TaskLaunch& launch) {
  launch.environment["LOCKSTEP_JOB"] = options.job_file;
  launch.environment["LOCKSTEP_SET"] = absl::StrJoin(options.settings, "\n");
  if (!options.status_address.empty()) {
    launch.environment["LOCKSTEP_STATUS_ADDRESS"] = options.status_address;
  }
  // "--fresh", or "--from" and the step.
  // A program of the user does not know these flags; its session reads the
  // environment.
  const std::vector<std::string> beginning = std::move(launch.begin_args);
  launch.begin_args.clear();
  if (beginning.empty()) return;
  launch.begin_environment["LOCKSTEP_BEGIN"] =
      beginning.size() == 1 ? "fresh" : beginning.back();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ChooseGpus(int count,
                                                    absl::string_view visible) {
  std::vector<std::string> gpus;
  if (visible.empty()) {
    for (int i = 0; i < count; ++i) gpus.push_back(absl::StrCat(i));
    return gpus;
  }
  gpus = absl::StrSplit(visible, ',');
  if (static_cast<int>(gpus.size()) < count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus is ", count, ", but CUDA_VISIBLE_DEVICES=", visible, " has ",
        gpus.size(), "; name more there, or give a smaller --gpus"));
  }
  gpus.resize(static_cast<size_t>(count));
  return gpus;
}

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
    const bool mirrors =
        cluster.hosts_mirrors && task.type != TaskType::kEvaluator;
    launch.program =
        absl::StrCat(options.program_dir, "/",
                     ProgramName(mirrors ? TaskType::kWorker : task.type));
    launch.environment["TF_CONFIG"] = ToJson(cluster.spec, task);
    if (std::string gpu = GpuOf(task, cluster, options); !gpu.empty()) {
      launch.environment["CUDA_VISIBLE_DEVICES"] = std::move(gpu);
    }
    launch.log_path =
        absl::StrCat(options.log_dir, "/", FileName(task), ".log");
    if (task.type == TaskType::kPs || mirrors) {
      launch.state_dir = absl::StrCat(options.state_dir, "/", FileName(task));
    }
    const bool computes = mirrors || task.type == TaskType::kWorker ||
                          task.type == TaskType::kEvaluator;
    launch.args = ArgsOf(task, task == cluster.chief, computes,
                         launch.state_dir, options);
    if (task == cluster.chief) launch.begin_args = options.beginning;
    const UserCommand& command =
        CommandOf(task, mirrors && task.type == TaskType::kChief, options);
    if (!command.empty()) {
      UseCommand(command, options, launch);
      if (task == cluster.chief) HostChief(options, launch);
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

}  // namespace lockstep::cli
