#include "deploy/cli/run/run_command.h"

#include <stdlib.h>
#include <string.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/flags/flag_parser.h"
#include "deploy/cli/run/launcher.h"
#include "deploy/cli/run/run_setup.h"
#include "deploy/cli/run/signal_inbox.h"
#include "deploy/cli/tasks/cluster_file.h"
#include "deploy/cli/tasks/log_files.h"
#include "deploy/cli/tasks/own_directory.h"
#include "deploy/cli/text/shell_words.h"

namespace lockstep::cli {
namespace {

// A shell reports a program that signal n has ended as 128 + n.
constexpr int kSignalExitBase = 128;

// Returns "2 ps, 1 chief, 3 workers", in the order of their start.
std::string CountTasks(const LocalCluster& cluster) {
  std::vector<std::pair<TaskType, int>> counts;
  for (const TaskId& task : cluster.tasks) {
    if (counts.empty() || counts.back().first != task.type) {
      counts.emplace_back(task.type, 0);
    }
    ++counts.back().second;
  }
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
    const auto& [type, count] = entry;
    absl::StrAppend(out, count, " ", TaskTypeName(type),
                    count > 1 && type != TaskType::kPs ? "s" : "");
  });
}

// Returns the program's name or path for pasting into any shell of this
// machine.
std::string OwnCall() {
  const char* path = getenv("PATH");
  return CallOf(OwnProgram(), path == nullptr ? "" : path);
}

UserCommand Joined(UserCommand words, const UserCommand& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string Opening(const RunSetup& setup) {
  return absl::StrCat(
      WarningLines(setup.cluster.warnings), "job ", setup.job_name, ": ",
      CountTasks(setup.cluster), "\nlogs: ", setup.log_dir,
      "\nstatus: ", OwnCall(), " status --log_dir ", ShellWord(setup.log_dir),
      "\n",
      setup.status_address.empty()
          ? ""
          : absl::StrCat("page: http://", setup.status_address, "/\n"));
}

}  // namespace

RunCommand::RunCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "run",
          "Starts every task of a cluster on this machine, shows the "
          "progress, and exits when all have ended. Exit code: 0 the job "
          "is done, 1 it failed, 2 it cannot be run as it is, 3 an operator "
          "has stopped it for good, 129, 130, 131 or 143 this program got "
          "SIGHUP, SIGINT, SIGQUIT or SIGTERM; 143 also if the job was stopped "
          "by another such signal.")) {
  AddWhat();
  AddHow();
}

void RunCommand::AddWhat() {
  CLI::Option* cluster = app_.add_option(
      "--cluster", cluster_file_,
      "JSON file with the tasks: {\"cluster\": {\"chief\": "
      "[\"localhost:0\"], \"ps\": [...], \"worker\": [...]}}. A "
      "port of 0 is chosen. Or give --workers instead.");
  app_.add_option("--workers", counts_.workers,
                  "Number of workers, instead of a cluster file: they get a "
                  "chief and --ps servers. Not needed where strategy.kind is "
                  "MIRRORED or ONE_DEVICE, which have one.")
      ->check(CLI::Range(1, 10'000))
      ->excludes(cluster);
  app_.add_option("--ps", counts_.ps, "Number of servers beside --workers.")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000))
      ->excludes(cluster);
  app_.add_option("--backups", counts_.backups,
                  "Number of the --workers that a step does not wait for.")
      ->capture_default_str()
      ->check(CLI::Range(0, 9'999))
      ->excludes(cluster);
  app_.add_option("--job", job_file_,
                  "Job file, for the chief. Without it, --set must give the "
                  "whole job.");
  app_.add_option("--set", settings_,
                  "key=value that replaces a field of the job file; may be "
                  "given again.")
      // A list would otherwise also take the words of the user's command.
      ->allow_extra_args(false);
  app_.add_option("--evaluator", evaluator_,
                  "Command line that the shell runs as the evaluator, for "
                  "workers that are your own program.");
  app_.add_option("command", command_,
                  "After --: your own program and its arguments, as in -- "
                  "python3 train.py. Each worker task runs it with its "
                  "TF_CONFIG; model.kind is then \"external\".");
}

void RunCommand::AddHow() {
  app_.add_option("--log_dir", log_dir_,
                  "Directory for one log per task, cluster.json and "
                  "chief.textproto; made if missing. Otherwise a new one in "
                  "$TMPDIR, where the last ten of the job stay.");
  app_.add_option("--state_dir", state_dir_,
                  "Directory where servers keep their state; it stays after "
                  "the run, and a run with the same cluster, without ports of "
                  "0, goes on from it. Default: a private directory in "
                  "/dev/shm, which is removed after the run.");
  app_.add_option("--compute_threads", compute_threads_,
                  "Threads that each worker computes with. Otherwise the cores "
                  "are divided among the workers.")
      ->check(CLI::Range(1, 1024));
  app_.add_option("--gpus", gpus_,
                  "Number of GPUs to give to the workers in turn; with more "
                  "workers than GPUs some share one. Otherwise each worker "
                  "takes the first GPU that it finds, or the CPU.")
      ->check(CLI::Range(1, 1024));
  app_.add_option("--restarts", restarts_,
                  "How often a task that dies of a signal, or asks for a "
                  "restart with an exit code of 128 or above, is restarted "
                  "within 10 minutes before the run ends; 0: never.")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  CLI::Option* fresh =
      app_.add_flag("--fresh", fresh_,
                    "Begin at step 0 and ignore the state in --state_dir: "
                    "existing checkpoints are renamed to set-aside-step-...");
  app_.add_option("--from", from_,
                  "Go on from the checkpoint of this step; newer ones are "
                  "renamed to set-aside-step-...")
      ->type_name("STEP")
      ->check(AtLeast(0))
      ->excludes(fresh);
  CLI::Option* tls = app_.add_flag(
      "--tls", tls_,
      "Use mutual TLS with certificates that are made for this run and removed "
      "at its end, so that other users can neither reach the job nor pose as a "
      "part of it. This is the default.");
  app_.add_flag("--insecure", insecure_,
                "Use no certificates: every user and, beyond loopback, every "
                "host that reaches a port can stop the job or read the model.")
      ->excludes(tls);
  app_.add_option("--status_address", status_address_,
                  "HOST:PORT of the job's page, which also serves the chief's "
                  "metrics; port 0 is chosen. Empty: no page. With "
                  "certificates only this user sees it, on this machine.")
      ->capture_default_str();
  app_.add_option("--log_level", log_level_,
                  "Least severe lines that all tasks log; your own programs "
                  "find it in LOCKSTEP_LOG_LEVEL.")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}));
  // An empty group hides a flag from the help.
  app_.add_option("--program_dir", program_dir_)->group("");
}

int RunCommand::Run(Terminal& terminal, std::ostream& err,
                    const UserCommand& command) const {
  TaskCounts counts = counts_;
  counts.ps_given = app_.count("--ps") > 0;
  Beginning beginning;
  if (fresh_) beginning.step = Beginning::kFresh;
  if (from_.has_value()) beginning.step = *from_;
  // Before the set-up: a signal that ended it would leave its directories.
  SignalInbox signals = Launcher::CatchSignals();
  absl::StatusOr<RunSetup> setup = SetUpRun(
      {.cluster_file = cluster_file_,
       .counts = counts,
       .job_file = job_file_,
       .settings = settings_,
       .log_dir = log_dir_,
       .state_dir = state_dir_,
       .log_level = log_level_,
       .own_log_level = app_.count("--log_level") > 0 ? log_level_ : "",
       .program_dir = program_dir_.empty() ? OwnDirectory() : program_dir_,
       .compute_threads = compute_threads_,
       .insecure = insecure_,
       .status_address = status_address_,
       .gpus = gpus_,
       .beginning = beginning,
       .command = Joined(command_, command),
       .evaluator_command = evaluator_});
  if (!setup.ok()) {
    err << "lockstep run: " << setup.status().message() << "\n";
    return kUsageExitCode;
  }
  if (const std::optional<int> signal = signals.TakeStop()) {
    err << "lockstep run: stopped by SIG" << sigabbrev_np(*signal)
        << " before any task was started\n";
    return kSignalExitBase + *signal;
  }
  // A signal must find the loop of the launcher, also while the terminal takes
  // no output.
  terminal.NeverWait();
  terminal.Print(Opening(*setup));
  Launcher launcher(
      {.launches = setup->launches,
       .chief = setup->cluster.chief,
       .chief_address = setup->cluster.chief_address,
       .operator_tls_dir = setup->operator_tls_dir,
       .needed_workers = setup->needed_workers,
       .need_follows_settings = setup->need_follows_settings,
       .restarts = restarts_,
       .programs = setup->programs,
       .elastic_programs = setup->elastic_programs,
       .chief_in_program = setup->chief_in_program,
       .input_ends = setup->input_ends,
       .ps_are_mirrors = setup->ps_are_mirrors,
       .result_path = absl::StrCat(setup->log_dir, "/", kResultFile),
       .place = {.checkpoints = setup->checkpoints,
                 .state = setup->kept_state,
                 .program = OwnCall(),
                 .beginning = beginning}},
      terminal, signals);
  return launcher.Run();
}

}  // namespace lockstep::cli
