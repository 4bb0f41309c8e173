#include "deploy/cli/inspect/nearest_command.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/job/variable_settings.h"
#include "deploy/cli/inspect/nearest_words.h"
#include "deploy/cli/inspect/trained_job.h"
#include "deploy/cli/tasks/log_files.h"
#include "worker/data/files/data_file.h"

namespace lockstep::cli {
namespace {

// Moves each row of a growing table to the index of its key, which is a word.
// Words that occurred in no pair get zeros.
absl::StatusOr<std::vector<float>> Spread(const std::vector<float>& rows,
                                          const std::vector<int64_t>& keys,
                                          int64_t width, int64_t words) {
  std::vector<float> vectors(words * width);
  for (size_t row = 0; row < keys.size(); ++row) {
    if (keys[row] < 0 || keys[row] >= words) {
      return absl::FailedPreconditionError(
          absl::StrCat("the table has a row of word ", keys[row], " of ", words,
                       "; give the text and the --min_count of the job"));
    }
    std::copy_n(rows.begin() + row * width, width,
                vectors.begin() + keys[row] * width);
  }
  return vectors;
}

absl::StatusOr<NearestWords> Load(const std::string& checkpoints, int64_t step,
                                  const std::string& table,
                                  Vocabulary vocabulary) {
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader reader,
                            OpenSound(checkpoints, step));
  LOCKSTEP_ASSIGN_OR_RETURN(const SafetensorsReader* file,
                            reader.FileOf(table));
  const StoredTensor& stored = *file->Find(table);
  // A table that grows has rows only for words that were trained, and keys that
  // name them.
  const bool grown = reader.FileOf(TensorNameOf(table, kKeysName)).ok();
  if (stored.shape.size() != 2 ||
      (stored.shape[0] != vocabulary.size() && !grown)) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", table, "\" does not have a row for each of the ",
                     vocabulary.size(),
                     " words; give the text and the --min_count of the job"));
  }
  std::vector<float> vectors(stored.shape[0] * stored.shape[1]);
  LOCKSTEP_RETURN_IF_ERROR(reader.Read(table, absl::MakeSpan(vectors)));
  if (grown) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> keys,
                              reader.ReadKeys(table));
    if (static_cast<int64_t>(keys.size()) != stored.shape[0]) {
      return absl::DataLossError(
          absl::StrCat("\"", table, "\" has ", stored.shape[0], " rows and ",
                       keys.size(), " keys; the checkpoint is damaged"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        vectors, Spread(vectors, keys, stored.shape[1], vocabulary.size()));
  }
  return NearestWords(std::move(vocabulary), std::move(vectors));
}

// Reads the file as workers read those of data.train_files: gzipped or not, and
// with their limit of its size.
absl::StatusOr<std::string> ReadTrainingText(const std::string& path) {
  absl::StatusOr<std::string> text = worker::ReadDataText(path);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      absl::StrCat("--text ", text.status().message()));
}

// Counts the pairs whose second word is among the nearest of the first.
absl::Status CountPairs(const NearestWords& words, const std::string& path,
                        int64_t count, Terminal& terminal) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFlagFile("--pairs", path));
  std::istringstream file(text);
  std::string first;
  std::string second;
  int64_t pairs = 0;
  int64_t found = 0;
  while (file >> first >> second) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t rank, words.Rank(first, second));
    terminal.Print(
        absl::StrFormat("%-24s %5d\n", absl::StrCat(first, " ", second), rank));
    ++pairs;
    found += rank <= count;
  }
  if (pairs == 0) {
    return absl::NotFoundError(absl::StrCat("no pair of words in ", path));
  }
  terminal.Print(absl::StrCat(found, " of ", pairs, " pairs among the ", count,
                              " nearest\n"));
  return absl::OkStatus();
}

}  // namespace

NearestCommand::NearestCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "nearest",
          "Prints the words whose vectors are nearest to a word's, by cosine, "
          "of the newest checkpoint of a skip_gram model.")) {
  app_.add_option("--checkpoints", checkpoints_,
                  "checkpoint.directory of the job.")
      ->required();
  app_.add_option("--step", step_,
                  "Global step of the checkpoint. Default: the newest.")
      ->check(AtLeast(0));
  app_.add_option("--text", text_,
                  "The text that the job was trained on, in one file, gzipped "
                  "or not: it gives the word of each row.")
      ->required();
  app_.add_option("--min_count", min_count_, "data.min_count of the job.")
      ->capture_default_str();
  app_.add_option("--table", table_, "The table to look in.")
      ->capture_default_str();
  app_.add_option("--count", count_, "Number of words to print.")
      ->check(AtLeast(1))
      ->capture_default_str();
  CLI::Option& word = *app_.add_option(
      "--word", word_, "The word, in lower case. Give this or --pairs.");
  app_.add_option("--pairs", pairs_,
                  "A file with two words a line: counts the pairs of which the "
                  "second is among the nearest of the first.")
      ->excludes(&word);
}

int NearestCommand::Run(Terminal& terminal, std::ostream& err) const {
  if (word_.empty() && pairs_.empty()) {
    err << "lockstep nearest: neither --word nor --pairs is given; give one\n";
    return kUsageExitCode;
  }
  const absl::Status status = Answer(terminal);
  if (status.ok()) return 0;
  err << "lockstep nearest: " << status.message() << "\n";
  return 1;
}

absl::Status NearestCommand::Answer(Terminal& terminal) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTrainingText(text_));
  LOCKSTEP_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                            Vocabulary::Make(text, min_count_));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const NearestWords words,
      Load(checkpoints_, step_, table_, std::move(vocabulary)));
  if (!pairs_.empty()) return CountPairs(words, pairs_, count_, terminal);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto nearest, words.Find(word_, count_));
  for (const auto& [word, cosine] : nearest) {
    terminal.Print(absl::StrFormat("%-24s %.4f\n", word, cosine));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::cli
