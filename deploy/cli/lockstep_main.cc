#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string_view>

#include "common/flags/flag_parser.h"
#include "common/process/process.h"
#include "common/process/process_limits.h"
#include "deploy/cli/certs/certs_command.h"
#include "deploy/cli/command/user_command.h"
#include "deploy/cli/config/config_check_command.h"
#include "deploy/cli/config/config_make_command.h"
#include "deploy/cli/config/explain_command.h"
#include "deploy/cli/inspect/evaluate_command.h"
#include "deploy/cli/inspect/export_command.h"
#include "deploy/cli/inspect/nearest_command.h"
#include "deploy/cli/inspect/predict_command.h"
#include "deploy/cli/inspect/sample_command.h"
#include "deploy/cli/logs/logs_command.h"
#include "deploy/cli/run/run_command.h"
#include "deploy/cli/run/task_command.h"
#include "deploy/cli/simulate/simulate_command.h"
#include "deploy/cli/status/operator_command.h"
#include "deploy/cli/status/steer_command.h"
#include "deploy/cli/text/terminal.h"
#include "deploy/cli/trace/trace_command.h"

namespace lockstep::cli {
namespace {

// All sub-commands of the program.
struct Commands {
  explicit Commands(CLI::App& app)
      : run(app),
        status(app),
        stop(app),
        steer(app),
        task(app),
        explain(app),
        explain_job(explain.app()),
        trace(app),
        logs(app),
        exporting(app),
        evaluate(app),
        nearest(app),
        predict(app),
        sample(app),
        simulate(app),
        certs(app),
        config(*app.add_subcommand(
            "config",
            "Checks or writes a TF_CONFIG, the addresses of all tasks.")),
        config_check(config),
        config_make(config) {
    config.require_subcommand(1);
  }

  int Run(Terminal& terminal, const UserCommand& command) const {
    if (run.chosen()) return run.Run(terminal, std::cerr, command);
    if (status.chosen()) return status.Run(terminal, std::cerr);
    if (steer.chosen()) return steer.Run(terminal, std::cerr);
    if (logs.chosen()) return logs.Run(terminal, std::cerr);
    if (trace.chosen()) return trace.Run(terminal, std::cerr);
    // Before `explain`, which is the same sub-command and chosen in both cases.
    if (explain_job.chosen()) return explain_job.Run(terminal, std::cerr);
    if (explain.chosen()) return explain.Run(terminal, std::cerr);
    if (exporting.chosen()) return exporting.Run(terminal, std::cerr);
    if (evaluate.chosen()) return evaluate.Run(terminal, std::cerr, command);
    if (nearest.chosen()) return nearest.Run(terminal, std::cerr);
    if (predict.chosen()) return predict.Run(terminal, std::cerr, command);
    if (sample.chosen()) return sample.Run(terminal, std::cerr);
    if (simulate.chosen()) return simulate.Run(terminal, std::cerr);
    if (certs.chosen()) return certs.Run(terminal, std::cerr);
    if (task.chosen()) return task.Run(command, terminal, std::cerr);
    if (config_check.chosen()) return config_check.Run(terminal, std::cerr);
    if (config_make.chosen()) return config_make.Run(terminal, std::cerr);
    // The parser has made sure that one of them is chosen.
    return stop.Run(terminal, std::cerr);
  }

  const RunCommand run;
  const StatusCommand status;
  const StopCommand stop;
  const SteerCommands steer;
  const TaskCommand task;
  const ExplainCommand explain;
  const ExplainJobCommand explain_job;
  const TraceCommand trace;
  const LogsCommand logs;
  const ExportCommand exporting;
  const EvaluateCommand evaluate;
  const NearestCommand nearest;
  const PredictCommand predict;
  const SampleCommand sample;
  const SimulateCommand simulate;
  const CertsCommands certs;
  CLI::App& config;
  const ConfigCheckCommand config_check;
  const ConfigMakeCommand config_make;
};

int Main(int argc, char** argv) {
  PrepareProcess();
  ExplainMissingResources(kExitFailed);
  FlagParser flags("lockstep",
                   "Trains jobs on this machine, and shows and steers "
                   "running jobs.");
  flags.app().require_subcommand(1);
  const Commands commands(flags.app());
  // Words after -- are those of another program. The parser would take some of
  // them for flags, and a word such as [1,2] for a list.
  const std::string_view chosen = argc > 1 ? argv[1] : "";
  const bool takes_command = chosen == "run" || chosen == "task" ||
                             chosen == "evaluate" || chosen == "predict";
  const UserCommand command =
      takes_command ? CutCommand(argc, argv) : UserCommand();
  if (const std::optional<int> code =
          flags.Parse(argc, argv, std::cout, std::cerr)) {
    return *code;
  }
  // A run goes on if its output pipe is closed. Other commands end then, as
  // `status --watch` before `head` must.
  if (commands.run.chosen()) signal(SIGPIPE, SIG_IGN);
  Terminal terminal(STDOUT_FILENO, getenv("NO_COLOR"), getenv("TERM"));
  const int code = commands.Run(terminal, command);
  // A script must not take half of an output for the whole, as on a full disk.
  // A run is judged by its job.
  if (code != 0 || terminal.error() == 0 || commands.run.chosen()) return code;
  std::cerr << "lockstep: the output is not complete: "
            << strerror(terminal.error()) << std::endl;
  return 1;
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) { return lockstep::cli::Main(argc, argv); }
