#include "deploy/cli/inspect/sample_command.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "worker/models/text_sampler.h"
#include "worker/models/zoo/registry.h"
#include "worker/scoring/averaged_values.h"

namespace lockstep::cli {
namespace {

// The model predicts the next byte of a text.
constexpr int64_t kByteValues = 256;

// A model's values, read from a checkpoint.
struct Values {
  std::vector<std::vector<float>> memory;
  std::vector<worker::ConstTensor> views;
};

absl::StatusOr<Values> Load(CheckpointReader reader, const worker::Model& model,
                            const JobConfig& job) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> averaged,
                            worker::NamesUsedAveraged(job, model.variables()));
  worker::ReadAverages(averaged, reader);
  Values values;
  for (const VariableSpec& variable : worker::KeptVariables(model, job.model)) {
    LOCKSTEP_RETURN_IF_ERROR(reader.CheckVariable(variable));
    const worker::Shape shape(variable.shape.begin(), variable.shape.end());
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t size, worker::CountElements(shape));
    std::vector<float>& elements =
        values.memory.emplace_back(static_cast<size_t>(size));
    LOCKSTEP_RETURN_IF_ERROR(
        reader.Read(variable.name, absl::MakeSpan(elements)));
    // The view points to the elements, which stay in place when `memory` grows:
    // that moves only the vectors that own them.
    values.views.push_back(worker::ConstTensor::Of<float>(elements, shape));
  }
  return values;
}

// Replaces characters that could control a terminal by question marks.
std::string Printable(std::string text) {
  for (char& c : text) {
    // Bytes above 127 stay: they are letters in UTF-8.
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\n' &&
        c != '\t') {
      c = '?';
    }
  }
  return text;
}

}  // namespace

SampleCommand::SampleCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "sample",
          "Prints text that a transformer generates with a checkpoint's "
          "values; if the job has moving averages, with these, unless its "
          "moving_average.evaluate is false.")),
      trained_(app_) {
  app_.add_option("--prompt", prompt_, "The beginning of the text.")
      ->capture_default_str();
  app_.add_option("--bytes", bytes_, "Number of bytes to generate.")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
      ->capture_default_str();
  app_.add_option("--temperature", temperature_,
                  "Below 1, likely bytes become likelier; at 0, only the "
                  "likeliest byte is drawn.")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  app_.add_option("--seed", seed_, "Equal seeds generate equal texts.")
      ->check(AtLeast(0))
      ->capture_default_str();
}

int SampleCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::Status status = Write(terminal);
  if (status.ok()) return 0;
  err << "lockstep sample: " << status.message() << "\n";
  return 1;
}

absl::Status SampleCommand::Write(Terminal& terminal) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const JobConfig job, trained_.Read());
  if (job.model.kind != "transformer") {
    return absl::InvalidArgumentError(
        absl::StrCat("model.kind must be \"transformer\", got \"",
                     job.model.kind, "\"; no other model writes text"));
  }
  const worker::ModelInput input = {.height = 1,
                                    .width = 1,
                                    .channels = 1,
                                    .classes = kByteValues,
                                    .tokens = job.data.sequence_length};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                            worker::MakeModel(job.model, input));
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader checkpoint,
                            trained_.OpenCheckpoint(job));
  LOCKSTEP_ASSIGN_OR_RETURN(const Values values,
                            Load(std::move(checkpoint), *model, job));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::ComputeBackend> backend,
      trained_.OpenDevice());
  worker::TextSampler sampler(*model, *backend, values.views,
                              {.window = job.data.sequence_length,
                               .temperature = temperature_,
                               .key = seed_});
  std::string text = prompt_;
  for (int64_t i = 0; i < bytes_; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(sampler.Extend(text));
  }
  terminal.Print(absl::StrCat(Printable(std::move(text)), "\n"));
  return absl::OkStatus();
}

}  // namespace lockstep::cli
