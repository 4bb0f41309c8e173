#include <fstream>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/numeric/auc.h"
#include "common/records/tf_example_writer.h"
#include "common/records/tfrecord.h"
#include "deploy/examples/clicks/clicks.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxImpressions = int64_t{1} << 32;

struct Flags {
  std::string directory = ".";
  int64_t train = 300'000;
  int64_t test = 50'000;
  uint64_t seed = 1;
};

// What the true parameters reach.
struct Best {
  double all = 0;
  double wide = 0;
};

// Writes impressions to a file, and scores them.
absl::StatusOr<Best> Write(const std::string& path, int64_t count,
                           ClickModel& model) {
  std::ofstream file(path, std::ios::binary);
  std::vector<ScoredExample> all;
  std::vector<ScoredExample> wide;
  std::string record;
  for (int64_t i = 0; i < count; ++i) {
    const Impression impression = model.Draw();
    all.emplace_back(impression.log_odds, impression.clicked);
    wide.emplace_back(impression.wide_log_odds, impression.clicked);
    record.clear();
    AppendTfRecord(SerializeTfExample(ToExample(impression)), record);
    file << record;
  }
  file.close();
  if (!file) return absl::UnknownError(absl::StrCat("cannot write ", path));
  return Best{AreaUnderCurve(std::move(all)).value_or(0.5),
              AreaUnderCurve(std::move(wide)).value_or(0.5)};
}

absl::Status MakeData(const Flags& flags) {
  ClickModel model(flags.seed);
  LOCKSTEP_RETURN_IF_ERROR(
      Write(flags.directory + "/train.tfrecord", flags.train, model).status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Best best,
      Write(flags.directory + "/test.tfrecord", flags.test, model));
  std::cout << absl::StrFormat(
      "%d impressions and %d held out, in %s; AUC of the true model on these: "
      "%.4f, of its wide part alone: %.4f\n",
      flags.train, flags.test, flags.directory, best.all, best.wide);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Flags flags;
  lockstep::FlagParser parser(
      "click_data",
      "Makes train.tfrecord and test.tfrecord of clicks on advertisements that "
      "follow a logistic model, and prints how well that model itself tells "
      "them apart: the best that a trained one can do.");
  parser.app()
      .add_option("--directory", flags.directory, "Where the files go.")
      ->capture_default_str();
  parser.app()
      .add_option("--train", flags.train, "Impressions to train on.")
      ->check(CLI::Range(int64_t{1}, lockstep::kMaxImpressions))
      ->capture_default_str();
  parser.app()
      .add_option("--test", flags.test, "Impressions that are held out.")
      ->check(CLI::Range(int64_t{1}, lockstep::kMaxImpressions))
      ->capture_default_str();
  parser.app()
      .add_option("--seed", flags.seed,
                  "Of the parameters and the impressions.")
      ->capture_default_str();
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  const absl::Status status = lockstep::MakeData(flags);
  if (status.ok()) return 0;
  std::cerr << "click_data: " << status.message() << "\n";
  return 1;
}
