#include "deploy/cli/inspect/evaluate_command.h"

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "deploy/cli/inspect/shown_progress.h"
#include "deploy/cli/tasks/job_checks.h"
#include "worker/scoring/checkpoint_scorer.h"

namespace lockstep::cli {
namespace {

std::string Describe(int64_t step, const worker::TableScore& score) {
  std::string text = absl::StrFormat("step %d: accuracy %.4f, loss %.4f", step,
                                     score.accuracy, score.loss);
  if (score.auc.has_value())
    absl::StrAppendFormat(&text, ", AUC %.4f", *score.auc);
  absl::StrAppend(&text, ", ", score.examples, " examples\n");
  return text;
}

absl::StatusOr<worker::TableScore> Score(const JobConfig& job,
                                         CheckpointReader& checkpoint,
                                         worker::ComputeBackend& backend,
                                         Terminal& terminal) {
  ShownProgress progress(terminal);
  progress.BeginReading("reads the test set");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::CheckpointScorer> scorer,
      worker::CheckpointScorer::Make(job, backend));
  LOCKSTEP_RETURN_IF_ERROR(scorer->FitToTrainingSet());
  progress.Begin(
      absl::StrCat("scores step ", checkpoint.manifest().global_step));
  return scorer->Score(checkpoint, progress.on_scored());
}

}  // namespace

EvaluateCommand::EvaluateCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "evaluate",
          "Scores a checkpoint on the job's test set; no chief has to run.")),
      trained_(app_) {
  app_.footer(kProgramHelp);
}

int EvaluateCommand::Run(Terminal& terminal, std::ostream& err,
                         const UserCommand& command) const {
  const absl::Status status = Evaluate(terminal, command);
  if (status.ok()) return 0;
  err << "lockstep evaluate: " << status.message() << "\n";
  return 1;
}

absl::Status EvaluateCommand::Evaluate(Terminal& terminal,
                                       const UserCommand& command) const {
  if (!command.empty()) return trained_.Become(command);
  LOCKSTEP_ASSIGN_OR_RETURN(const JobConfig job, trained_.ReadBuiltIn());
  LOCKSTEP_RETURN_IF_ERROR(CheckTestSet(job));
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader checkpoint,
                            trained_.OpenCheckpoint(job));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::ComputeBackend> backend,
      trained_.OpenDevice());
  LOCKSTEP_ASSIGN_OR_RETURN(const worker::TableScore score,
                            Score(job, checkpoint, *backend, terminal));
  terminal.Print(Describe(checkpoint.manifest().global_step, score));
  return absl::OkStatus();
}

}  // namespace lockstep::cli
