#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string_view>

#include "common/flags/flag_parser.h"
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

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // a run goes on if its output pipe is closed
  lockstep::FlagParser flags(
      "lockstep", "Trains on this machine, and looks after running jobs.");
  flags.app().require_subcommand(1);
  const lockstep::cli::RunCommand run(flags.app());
  const lockstep::cli::StatusCommand status(flags.app());
  const lockstep::cli::StopCommand stop(flags.app());
  const lockstep::cli::SteerCommands steer(flags.app());
  const lockstep::cli::TaskCommand task(flags.app());
  const lockstep::cli::ExplainCommand explain(flags.app());
  const lockstep::cli::ExplainJobCommand explain_job(explain.app());
  const lockstep::cli::TraceCommand trace(flags.app());
  const lockstep::cli::LogsCommand logs(flags.app());
  const lockstep::cli::ExportCommand exporting(flags.app());
  const lockstep::cli::EvaluateCommand evaluate(flags.app());
  const lockstep::cli::NearestCommand nearest(flags.app());
  const lockstep::cli::PredictCommand predict(flags.app());
  const lockstep::cli::SampleCommand sample(flags.app());
  const lockstep::cli::SimulateCommand simulate(flags.app());
  const lockstep::cli::CertsCommands certs(flags.app());
  CLI::App& config = *flags.app().add_subcommand(
      "config", "Checks or writes a TF_CONFIG, the addresses of all tasks.");
  config.require_subcommand(1);
  const lockstep::cli::ConfigCheckCommand config_check(config);
  const lockstep::cli::ConfigMakeCommand config_make(config);
  // Words after -- are flags of another program; `run` takes them as they are.
  const std::string_view chosen = argc > 1 ? argv[1] : "";
  const bool takes_command =
      chosen == "task" || chosen == "evaluate" || chosen == "predict";
  const lockstep::cli::UserCommand command =
      takes_command ? lockstep::cli::CutCommand(argc, argv)
                    : lockstep::cli::UserCommand();
  if (const std::optional<int> code =
          flags.Parse(argc, argv, std::cout, std::cerr)) {
    return *code;
  }
  lockstep::cli::Terminal terminal(STDOUT_FILENO, getenv("NO_COLOR"),
                                   getenv("TERM"));
  if (run.chosen()) return run.Run(terminal, std::cerr);
  if (status.chosen()) return status.Run(terminal, std::cerr);
  if (steer.chosen()) return steer.Run(terminal, std::cerr);
  if (logs.chosen()) return logs.Run(terminal, std::cerr);
  if (trace.chosen()) return trace.Run(terminal, std::cerr);
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
  return stop.Run(terminal, std::cerr);
}
