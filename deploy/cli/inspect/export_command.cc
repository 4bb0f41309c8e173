#include "deploy/cli/inspect/export_command.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"
#include "common/flags/flag_parser.h"
#include "common/job/variable_settings.h"
#include "common/text/progress_text.h"
#include "deploy/cli/inspect/trained_job.h"
#include "deploy/cli/text/live_line.h"

namespace lockstep::cli {
namespace {

constexpr uint64_t kPieceBytes = 4 << 20;  // bytes copied at a time

// Shows how far the writing of a file is, on a terminal.
class WritingLine {
 public:
  WritingLine(Terminal& terminal, const std::string& path, uint64_t total)
      : line_(terminal, Clock::Real()),
        what_(absl::StrCat("writes ",
                           std::filesystem::path(path).filename().string())),
        total_(static_cast<int64_t>(total)) {}

  void Advance(uint64_t bytes) {
    done_ += static_cast<int64_t>(bytes);
    line_.Draw([this] {
      return absl::StrCat(
          what_,
          ProgressText(done_, total_,
                       absl::ToDoubleSeconds(Clock::Real().Now() - began_)));
    });
  }

 private:
  LiveLine line_;
  const std::string what_;
  const int64_t total_;
  int64_t done_ = 0;
  const absl::Time began_ = Clock::Real().Now();
};

absl::Status CopyTensor(const SafetensorsReader& from, absl::string_view source,
                        SafetensorsWriter& to, absl::string_view target,
                        WritingLine& line) {
  const uint64_t bytes = from.Find(source)->bytes;
  std::vector<char> piece(std::min(bytes, kPieceBytes));
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(std::min(bytes - at, kPieceBytes));
    LOCKSTEP_RETURN_IF_ERROR(from.ReadAt(source, at, absl::MakeSpan(piece)));
    LOCKSTEP_RETURN_IF_ERROR(to.WriteAt(target, at, piece));
    line.Advance(piece.size());
  }
  return absl::OkStatus();
}

// A pattern that matches a growing table also matches its keys, because its
// rows are useless without them.
bool Matches(const std::string& pattern, const StoredTensor& tensor) {
  if (MatchesVariable(pattern, tensor.name)) return true;
  const std::string suffix = TensorNameOf("", kKeysName);
  if (tensor.type != TensorType::kI64 || !absl::EndsWith(tensor.name, suffix)) {
    return false;
  }
  return MatchesVariable(
      pattern, tensor.name.substr(0, tensor.name.size() - suffix.size()));
}

// Gives the finished file its name, and makes the name last beyond a crash of
// the machine.
absl::Status Publish(const std::string& made, const std::string& path) {
  std::error_code error;
  std::filesystem::rename(made, path, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("--out is ", path, ": rename"));
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return SyncDirectory(parent.empty() ? "." : parent);
}

// An error of the unfinished file `made`, with the name that the user has given
// it. One that exists already was left by an export that did not end, and must
// be named.
absl::Status NamedAsGiven(const absl::Status& status, const std::string& made,
                          const std::string& out) {
  if (absl::IsAlreadyExists(status)) return status;
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(),
                          {{made, absl::StrCat("--out is ", out)}}));
}

// "1 slot", "2 slots".
std::string ExportedCount(size_t count, absl::string_view one) {
  return absl::StrCat(count, " ", one, count == 1 ? "" : "s");
}

}  // namespace

ExportCommand::ExportCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "export",
          "Writes variables of a checkpoint into one safetensors file, without "
          "the optimizer's slots unless --slots names them.")) {
  app_.add_option("--checkpoints", checkpoints_,
                  "checkpoint.directory of the job.")
      ->required();
  app_.add_option("--out", out_,
                  "The file to write, which must not exist; its directory "
                  "must.")
      ->required();
  app_.add_option("--step", step_,
                  "Global step of the checkpoint. Default: the newest.")
      ->check(AtLeast(0));
  app_.add_flag(
      "--averaged", averaged_,
      "Write moving averages, under the names of their variables. Variables "
      "without an average are written as they are.");
  app_.add_option(
      "--variables", patterns_,
      "Shell patterns of names, such as 'hidden*/weights'; '*' also "
      "matches '/'. Each must match a variable. Default: all.");
  app_.add_option(
      "--slots", slots_,
      "Shell patterns of slots, such as 'Momentum' or 'Adam*', which are "
      "written as VARIABLE/SLOT for each variable that has them. Each must "
      "match a slot; '*' matches all. Default: none.");
}

int ExportCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::Status status = Export(terminal);
  if (status.ok()) return 0;
  err << "lockstep export: " << status.message() << "\n";
  return 1;
}

absl::Status ExportCommand::Export(Terminal& terminal) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckOutIsNew(out_));
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader checkpoint,
                            OpenSound(checkpoints_, step_));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Chosen> chosen, Choose(checkpoint));
  // AddSlots() lengthens the list; the last line counts both parts.
  const size_t variables = chosen.size();
  LOCKSTEP_RETURN_IF_ERROR(AddSlots(checkpoint, chosen));
  LOCKSTEP_RETURN_IF_ERROR(Write(checkpoint, chosen, terminal));
  const auto averages = std::count_if(
      chosen.begin(), chosen.end(),
      [](const Chosen& one) { return one.source != one.target.name; });
  terminal.Print(absl::StrCat(
      out_, ": ", ExportedCount(variables, "variable"), " of step ",
      checkpoint.manifest().global_step,
      averaged_ ? absl::StrCat(", ", averages, " of them averages") : "",
      slots_.empty()
          ? ""
          : absl::StrCat(", ",
                         ExportedCount(chosen.size() - variables, "slot")),
      "\n"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ExportCommand::Chosen>> ExportCommand::Choose(
    const CheckpointReader& checkpoint) const {
  const std::vector<StoredTensor>& all = checkpoint.model().header().tensors;
  std::vector<bool> matched(patterns_.size());
  bool any_average = false;
  std::vector<Chosen> chosen;
  for (const StoredTensor& tensor : all) {
    bool wanted = patterns_.empty();
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (!Matches(patterns_[i], tensor)) continue;
      wanted = matched[i] = true;
    }
    if (!wanted) continue;
    const std::string average = TensorNameOf(tensor.name, kMovingAverageName);
    // Averages are slots of the optimizer's file, not variables of the model's.
    const bool kept = checkpoint.optimizer().Find(average) != nullptr;
    any_average |= kept;
    chosen.push_back({averaged_ && kept ? average : tensor.name, tensor});
  }
  const auto unmatched = std::find(matched.begin(), matched.end(), false);
  if (unmatched != matched.end()) {
    return absl::NotFoundError(absl::StrCat(
        "--variables is \"", patterns_[unmatched - matched.begin()],
        "\", which matches none of the ", all.size(), " variables",
        all.empty() ? "" : absl::StrCat("; the first is \"", all[0].name, "\""),
        ": change the pattern"));
  }
  if (averaged_ && !any_average) {
    return absl::FailedPreconditionError(
        absl::StrCat("--averaged is given, but ", checkpoints_,
                     " has no moving average of these variables: leave it out, "
                     "or train with moving_average"));
  }
  return chosen;
}

absl::Status ExportCommand::AddSlots(const CheckpointReader& checkpoint,
                                     std::vector<Chosen>& chosen) const {
  std::set<absl::string_view> variables;
  for (const Chosen& one : chosen) variables.insert(one.target.name);
  std::vector<Chosen> found;
  std::set<std::string> names;
  std::vector<bool> matched(slots_.size());
  for (const StoredTensor& tensor : checkpoint.optimizer().header().tensors) {
    // A variable's name may have slashes itself; a slot's has none.
    const size_t slash = tensor.name.rfind('/');
    if (slash == std::string::npos) continue;
    const auto variable = absl::string_view(tensor.name).substr(0, slash);
    if (!variables.contains(variable)) continue;
    const std::string slot = tensor.name.substr(slash + 1);
    names.insert(slot);
    bool wanted = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!MatchesVariable(slots_[i], slot)) continue;
      wanted = matched[i] = true;
    }
    if (wanted) found.push_back({tensor.name, tensor});
  }
  const auto unmatched = std::find(matched.begin(), matched.end(), false);
  if (unmatched != matched.end()) {
    return absl::NotFoundError(absl::StrCat(
        "--slots is \"", slots_[unmatched - matched.begin()],
        "\", which matches no slot of these variables; ",
        names.empty() ? "they have none: leave it out"
                      : absl::StrCat("they have ", absl::StrJoin(names, ", "),
                                     ": change the pattern")));
  }
  chosen.insert(chosen.end(), found.begin(), found.end());
  return absl::OkStatus();
}

absl::Status ExportCommand::Write(const CheckpointReader& checkpoint,
                                  const std::vector<Chosen>& chosen,
                                  Terminal& terminal) const {
  std::vector<TensorSpec> tensors;
  for (const Chosen& one : chosen) tensors.push_back(one.target);
  // Beside the final file, because rename() does not leave a file system.
  const std::string made = out_ + ".partial";
  absl::StatusOr<std::unique_ptr<SafetensorsWriter>> created =
      SafetensorsWriter::Create(
          made, std::move(tensors),
          {{"format", "lockstep"},
           {"job", checkpoint.manifest().job_name},
           {"global_step", absl::StrCat(checkpoint.manifest().global_step)},
           {"values", averaged_ ? "averaged" : "plain"}});
  if (!created.ok()) return NamedAsGiven(created.status(), made, out_);
  const std::unique_ptr<SafetensorsWriter> file = *std::move(created);
  // All files are looked up before the first byte is copied: the line of
  // progress needs the sum.
  uint64_t total = 0;
  for (const Chosen& one : chosen) {
    LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* from,
                              checkpoint.FileOf(one.source));
    total += from->Find(one.source)->bytes;
  }
  WritingLine line(terminal, out_, total);
  for (const Chosen& one : chosen) {
    LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* from,
                              checkpoint.FileOf(one.source));
    LOCKSTEP_RETURN_IF_ERROR(
        CopyTensor(*from, one.source, *file, one.target.name, line));
  }
  LOCKSTEP_RETURN_IF_ERROR(file->Finish());
  return Publish(made, out_);
}

}  // namespace lockstep::cli
