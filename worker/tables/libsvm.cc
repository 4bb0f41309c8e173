#include "worker/tables/libsvm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/text/excerpt.h"
#include "worker/data/files/data_file.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

// Parses the whole of `word` as a number; a plus sign may precede it, which
// std::from_chars does not accept. A floating-point number below the range of T
// is 0, one above it infinite.
template <typename T>
bool Parse(absl::string_view word, T& value) {
  if (absl::ConsumePrefix(&word, "+") && absl::StartsWith(word, "-")) {
    return false;
  }
  const char* end = word.data() + word.size();
  const auto result = std::from_chars(word.data(), end, value);
  if (std::is_floating_point_v<T> &&
      result.ec == std::errc::result_out_of_range) {
    // std::from_chars does not tell which end of the range was left.
    double wide = 0;
    if (!absl::SimpleAtod(word, &wide)) return false;
    value = static_cast<T>(wide);
    return true;
  }
  return result.ec == std::errc() && result.ptr == end;
}

absl::Status Wrong(absl::string_view what, absl::string_view word,
                   const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", Excerpt(word), ", must be ", allowed));
}

using Feature = std::pair<int64_t, float>;

absl::Status ParseFeature(absl::string_view word, const LibsvmOptions& options,
                          Feature& feature) {
  const size_t colon = word.find(':');
  if (colon == absl::string_view::npos) {
    return Wrong("a feature", word, "a number, a colon and its value");
  }
  const int64_t base = options.index_base;
  const absl::string_view number = word.substr(0, colon);
  if (!Parse(number, feature.first) || feature.first < base ||
      // Cannot overflow: the number is at least `base` here.
      feature.first - base >= options.num_features) {
    return Wrong(
        "a feature's number", number,
        absl::StrCat("from ", base, " to ", base + options.num_features - 1));
  }
  feature.first -= base;
  const absl::string_view value = word.substr(colon + 1);
  if (!Parse(value, feature.second) || !std::isfinite(feature.second)) {
    return Wrong("a feature's value", value, "a finite number");
  }
  return absl::OkStatus();
}

// Sorts the features of a line and adds them as an example.
absl::Status AddExample(bool label, std::vector<Feature>& features,
                        const LibsvmOptions& options,
                        SparseExamples& examples) {
  // Most files are sorted already; sorting makes the check for duplicates a
  // comparison of neighbours.
  std::sort(features.begin(), features.end());
  for (size_t i = 1; i < features.size(); ++i) {
    if (features[i].first != features[i - 1].first) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("feature ", features[i].first + options.index_base,
                     " occurs twice; give it one value"));
  }
  for (const auto& [index, value] : features) {
    examples.features.push_back(index);
    examples.values.push_back(value);
  }
  examples.labels.push_back(label);
  examples.ends.push_back(examples.features.size());
  return absl::OkStatus();
}

absl::Status ParseLine(absl::string_view line, const LibsvmOptions& options,
                       SparseExamples& examples) {
  // substr() accepts npos: a line without a comment.
  line = line.substr(0, line.find('#'));
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  double label = 0;
  if (!Parse(words[0], label) || !std::isfinite(label)) {
    return Wrong("the label", words[0], "a finite number");
  }
  std::vector<Feature> features(words.size() - 1);
  for (size_t i = 1; i < words.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(ParseFeature(words[i], options, features[i - 1]));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool positive, BinaryLabel(label));
  return AddExample(positive, features, options, examples);
}

}  // namespace

absl::Status ParseLibsvm(absl::string_view text, const std::string& source,
                         const LibsvmOptions& options,
                         SparseExamples& examples) {
  const size_t examples_before = examples.labels.size();
  const size_t features_before = examples.features.size();
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = ParseLine(line, options, examples);
    if (status.ok()) continue;
    // Removes the lines before the wrong one.
    examples.labels.resize(examples_before);
    examples.ends.resize(examples_before);
    examples.features.resize(features_before);
    examples.values.resize(features_before);
    return absl::Status(status.code(), absl::StrCat(source, ":", number, ": ",
                                                    status.message()));
  }
  return absl::OkStatus();
}

absl::Status ReadLibsvmFile(const std::string& path,
                            const LibsvmOptions& options,
                            SparseExamples& examples) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadDataText(path));
  return ParseLibsvm(text, path, options, examples);
}

}  // namespace lockstep::worker
