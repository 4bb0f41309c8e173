#include "deploy/cli/run/task_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <climits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "deploy/cli/tasks/log_files.h"
#include "deploy/cli/tasks/own_directory.h"
#include "deploy/cli/text/shell_words.h"

namespace lockstep::cli {
namespace {

std::string OwnHostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

// Returns the command in one line, for pasting into a shell.
std::string CommandLine(const TaskPlan& plan) {
  std::string line = absl::StrCat("TF_CONFIG=", ShellWord(plan.tf_config));
  for (const auto& [name, value] : plan.environment) {
    absl::StrAppend(&line, " ", name, "=", ShellWord(value));
  }
  absl::StrAppend(&line, " ", ShellWord(plan.program));
  for (const std::string& arg : plan.args) {
    absl::StrAppend(&line, " ", ShellWord(arg));
  }
  return line + "\n";
}

// Replaces this process by the program; returns only if that fails.
absl::Status Become(const TaskPlan& plan) {
  std::vector<char*> args = {const_cast<char*>(plan.program.c_str())};
  for (const std::string& arg : plan.args) {
    args.push_back(const_cast<char*>(arg.c_str()));
  }
  args.push_back(nullptr);
  // A TF_CONFIG from outside would be that of another task.
  setenv("TF_CONFIG", plan.tf_config.c_str(), 1);
  for (const auto& [name, value] : plan.environment) {
    setenv(name.c_str(), value.c_str(), 0);  // an operator may choose others
  }
  execv(plan.program.c_str(), args.data());
  return absl::InvalidArgumentError(
      absl::StrCat(plan.program, ": cannot be run: ", strerror(errno)));
}

}  // namespace

TaskCommand::TaskCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "task",
          "Becomes the program of one task of the cluster.json and the "
          "job.textproto in CONFIG_DIR/JOB. For service managers and "
          "containers.")) {
  app_.add_option("role", role_, "chief, ps, worker or evaluator.")->required();
  app_.add_option("instance", instance_, "JOB.INDEX; JOB alone is for index 0.")
      ->required();
  app_.add_option("--config_dir", config_dir_,
                  "Directory with one directory per job.")
      ->capture_default_str();
  app_.add_option("--state_dir", state_dir_,
                  "Where a ps, or a worker or chief with a copy of the "
                  "variables, keeps its state. Otherwise $RUNTIME_DIRECTORY, "
                  "which systemd sets, or the program's own default.");
  app_.add_flag("--pod_index", pod_index_,
                "Take the index from this host's name, after the last '-', as "
                "in a pod of an indexed Job.");
  app_.add_flag("--show", show_, "Print the command instead of running it.");
  app_.add_option("--program_dir", program_dir_)->group("");
  // Words that are not known here are for the program, and stay in order.
  app_.prefix_command();
  app_.footer(
      "Flags after INSTANCE go to the program. After -- stands your own "
      "program "
      "for a worker, an evaluator or a chief that trains: lockstep task worker "
      "JOB.INDEX -- python3 "
      "train.py");
}

int TaskCommand::Run(const UserCommand& command, Terminal& terminal,
                     std::ostream& err) const {
  const absl::StatusOr<TaskPlan> plan = Plan(command);
  absl::Status status = plan.status();
  if (plan.ok()) {
    if (show_) {
      terminal.Print(CommandLine(*plan));
      return 0;
    }
    status = Become(*plan);
  }
  err << "lockstep task: " << status.message() << "\n";
  return kUsageExitCode;
}

absl::StatusOr<TaskPlan> TaskCommand::Plan(const UserCommand& command) const {
  TaskPlanOptions options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.instance,
                            ParseTaskInstance(role_, instance_));
  if (pod_index_) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.instance.task.index,
                              IndexOfPodName(OwnHostName()));
  }
  const std::string directory =
      absl::StrCat(config_dir_, "/", options.instance.job);
  options.cluster_path = absl::StrCat(directory, "/cluster.json");
  options.job_path = absl::StrCat(directory, "/job.textproto");
  LOCKSTEP_ASSIGN_OR_RETURN(options.cluster_json,
                            ReadTextFile(options.cluster_path));
  // systemd sets it for a unit with RuntimeDirectory=, and has made the
  // directory.
  const char* runtime_directory = getenv("RUNTIME_DIRECTORY");
  options.state_dir = !state_dir_.empty()            ? state_dir_
                      : runtime_directory != nullptr ? runtime_directory
                                                     : "";
  options.program_dir = program_dir_.empty() ? OwnDirectory() : program_dir_;
  options.more_args = app_.remaining();
  if (!command.empty()) {
    const char* path = getenv("PATH");
    LOCKSTEP_ASSIGN_OR_RETURN(
        options.command, ResolveCommand(command, path == nullptr ? "" : path));
  }
  return PlanTask(options);
}

}  // namespace lockstep::cli
