#include "deploy/cli/inspect/predict_command.h"

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"
#include "deploy/cli/inspect/shown_progress.h"
#include "deploy/cli/tasks/job_checks.h"
#include "worker/data/files/npy.h"
#include "worker/scoring/checkpoint_scorer.h"

namespace lockstep::cli {
namespace {

// One line for each example: the class that is most probable, how probable it
// is, and the probabilities of all.
std::string AsCsv(const worker::Predictions& predictions) {
  std::string text = "example,class,probability";
  for (int64_t c = 0; c < predictions.classes; ++c) {
    absl::StrAppend(&text, ",class_", c);
  }
  absl::StrAppend(&text, "\n");
  const size_t classes = static_cast<size_t>(predictions.classes);
  for (size_t i = 0; i < static_cast<size_t>(predictions.examples); ++i) {
    const absl::Span<const float> row =
        absl::MakeSpan(predictions.probabilities).subspan(i * classes, classes);
    const auto best = std::max_element(row.begin(), row.end());
    absl::StrAppendFormat(&text, "%d,%d,%.6g", i, best - row.begin(), *best);
    for (const float one : row) absl::StrAppendFormat(&text, ",%.6g", one);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string AsNpy(const worker::Predictions& predictions) {
  const auto* bytes =
      reinterpret_cast<const char*>(predictions.probabilities.data());
  return absl::StrCat(
      worker::MakeNpyHeader(worker::NumberType::kFloat32,
                            {predictions.examples, predictions.classes}),
      absl::string_view(bytes,
                        predictions.probabilities.size() * sizeof(float)));
}

absl::StatusOr<worker::Predictions> PredictionsOf(
    const JobConfig& job, const std::string& data, CheckpointReader& checkpoint,
    worker::ComputeBackend& backend, Terminal& terminal) {
  ShownProgress progress(terminal);
  progress.BeginReading("reads the examples");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::CheckpointScorer> scorer,
      data.empty()
          ? worker::CheckpointScorer::Make(job, backend)
          : worker::CheckpointScorer::MakeForFeatures(job, data, backend));
  // MakeForFeatures() finds the number of classes itself.
  if (data.empty()) LOCKSTEP_RETURN_IF_ERROR(scorer->FitToTrainingSet());
  progress.Begin(
      absl::StrCat("predicts with step ", checkpoint.manifest().global_step));
  return scorer->Predict(checkpoint, progress.on_scored());
}

}  // namespace

PredictCommand::PredictCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "predict",
          "Writes the class and the probabilities that a checkpoint's model "
          "gives each example of a file; no chief has to run.")),
      trained_(app_) {
  app_.footer(kProgramHelp);
  app_.add_option("--data", data_,
                  "Examples without labels: an IDX or NumPy file, or "
                  "FILE.npz:NAME; for a model with tables a file as in "
                  "data.test_files. By default the job's test set.");
  app_.add_option("--out", out_,
                  "The file to write, which must not exist: .npy for an array "
                  "of probabilities, float32 [examples, classes]; otherwise "
                  "lines of comma-separated values. By default the lines are "
                  "printed.");
}

int PredictCommand::Run(Terminal& terminal, std::ostream& err,
                        const UserCommand& command) const {
  const absl::Status status = Predict(terminal, command);
  if (status.ok()) return 0;
  err << "lockstep predict: " << status.message() << "\n";
  return 1;
}

absl::Status PredictCommand::Predict(Terminal& terminal,
                                     const UserCommand& command) const {
  if (!command.empty() && !(data_.empty() && out_.empty())) {
    return absl::InvalidArgumentError(
        "--data and --out are for built-in models; give them to your command, "
        "behind --");
  }
  if (!command.empty()) return trained_.Become(command);
  LOCKSTEP_ASSIGN_OR_RETURN(const JobConfig job, trained_.ReadBuiltIn());
  if (data_.empty()) LOCKSTEP_RETURN_IF_ERROR(CheckTestSet(job));
  // Checked first, because the predictions may take long.
  LOCKSTEP_RETURN_IF_ERROR(CheckOutIsNew(out_));
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader checkpoint,
                            trained_.OpenCheckpoint(job));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::ComputeBackend> backend,
      trained_.OpenDevice());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const worker::Predictions predictions,
      PredictionsOf(job, data_, checkpoint, *backend, terminal));
  if (out_.empty()) {
    terminal.Print(AsCsv(predictions));
    return absl::OkStatus();
  }
  const absl::Status written =
      WriteWholeFile(out_, absl::EndsWith(out_, ".npy") ? AsNpy(predictions)
                                                        : AsCsv(predictions));
  if (!written.ok()) {
    return absl::Status(written.code(), absl::StrCat("--out is ", out_, ": ",
                                                     written.message()));
  }
  terminal.Print(absl::StrCat(out_, ": predictions of step ",
                              checkpoint.manifest().global_step, " for ",
                              predictions.examples, " examples\n"));
  return absl::OkStatus();
}

}  // namespace lockstep::cli
