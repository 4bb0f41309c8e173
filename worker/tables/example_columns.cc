#include "worker/tables/example_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/fingerprint.h"
#include "common/base/status_macros.h"
#include "common/records/tfrecord.h"
#include "google/protobuf/arena.h"
#include "lockstep/v1/tf_example.pb.h"
#include "worker/data/files/data_file.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

absl::Status CheckSet(const char* field, int64_t value, const char* meaning) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is missing; set it to ", meaning));
}

absl::Status CheckDistinct(const std::vector<std::string>& categorical) {
  std::set<std::string> names;
  for (const std::string& name : categorical) {
    if (names.insert(name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "model.categorical has \"", name, "\" twice; name each feature once"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::pair<size_t, size_t>> PairOf(
    const std::string& cross, const std::vector<std::string>& categorical) {
  const std::vector<std::string> names = absl::StrSplit(cross, '*');
  std::vector<size_t> places;
  for (const std::string& name : names) {
    const auto found = std::find(categorical.begin(), categorical.end(), name);
    if (found == categorical.end()) break;
    places.push_back(static_cast<size_t>(found - categorical.begin()));
  }
  if (names.size() == 2 && places.size() == 2 && places[0] != places[1]) {
    return std::pair(places[0], places[1]);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "model.crosses has \"", cross,
      "\", but must have pairs of different features of model.categorical, as "
      "\"site*device\""));
}

absl::Status WrongFeature(const std::string& name, const char* allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("feature \"", name, "\" must be ", allowed));
}

// Returns the last feature of this name, as maps of protobuf do; an empty one
// if there is none.
const v1::TfFeature& Find(const v1::TfExample& example,
                          const std::string& name) {
  const auto& entries = example.features().feature();
  const auto found = std::find_if(entries.rbegin(), entries.rend(),
                                  [&name](const v1::TfFeatures::Entry& entry) {
                                    return entry.key() == name;
                                  });
  return found == entries.rend() ? v1::TfFeature::default_instance()
                                 : found->value();
}

absl::StatusOr<std::string> CategoryOf(const v1::TfExample& example,
                                       const std::string& name) {
  const v1::TfFeature& feature = Find(example, name);
  if (feature.bytes_list().value_size() == 1) {
    return feature.bytes_list().value(0);
  }
  if (feature.int64_list().value_size() == 1) {
    return absl::StrCat(feature.int64_list().value(0));
  }
  return WrongFeature(name, "one text or one integer");
}

absl::StatusOr<float> NumberOf(const v1::TfExample& example,
                               const std::string& name) {
  const v1::TfFeature& feature = Find(example, name);
  if (feature.float_list().value_size() == 1 &&
      std::isfinite(feature.float_list().value(0))) {
    return feature.float_list().value(0);
  }
  if (feature.int64_list().value_size() == 1) {
    return static_cast<float>(feature.int64_list().value(0));
  }
  return WrongFeature(name, "one finite number");
}

int64_t RowOf(const Fingerprint& hash, int64_t rows) {
  return static_cast<int64_t>(hash.Below(static_cast<uint64_t>(rows)));
}

void AddRows(const ColumnLayout& layout,
             const std::vector<std::string>& categories,
             ColumnExamples& examples) {
  for (size_t c = 0; c < categories.size(); ++c) {
    Fingerprint wide;
    // Wide features share one table, so the name is part of the hash.
    wide.Add(layout.categorical[c]).Add(categories[c]);
    examples.wide.push_back(RowOf(wide, layout.wide_rows));
    Fingerprint deep;
    // Each feature has an embedding table of its own.
    deep.Add(categories[c]);
    examples.deep.push_back(RowOf(deep, layout.deep_rows));
  }
  // Crosses share the wide table with single categories: their hash has four
  // parts and that of a category two, so they rarely meet in a row.
  for (const auto& [a, b] : layout.crosses) {
    Fingerprint wide;
    wide.Add(layout.categorical[a]).Add(layout.categorical[b]);
    wide.Add(categories[a]).Add(categories[b]);
    examples.wide.push_back(RowOf(wide, layout.wide_rows));
  }
}

absl::Status AddExample(const v1::TfExample& example,
                        const ColumnLayout& layout, ColumnExamples& examples) {
  LOCKSTEP_ASSIGN_OR_RETURN(const float label, NumberOf(example, layout.label));
  const absl::StatusOr<bool> positive = BinaryLabel(label);
  if (!positive.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature \"", layout.label, "\": ", positive.status().message()));
  }
  std::vector<std::string> categories;
  for (const std::string& name : layout.categorical) {
    LOCKSTEP_ASSIGN_OR_RETURN(categories.emplace_back(),
                              CategoryOf(example, name));
  }
  for (const std::string& name : layout.numeric) {
    LOCKSTEP_ASSIGN_OR_RETURN(examples.numeric.emplace_back(),
                              NumberOf(example, name));
  }
  AddRows(layout, categories, examples);
  examples.labels.push_back(*positive);
  return absl::OkStatus();
}

// Returns true if there was one more record.
absl::StatusOr<bool> AddRecord(TfRecordReader& reader,
                               const ColumnLayout& layout,
                               ColumnExamples& examples) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<absl::string_view> record,
                            reader.Next());
  if (!record.has_value()) return false;
  // An arena on the stack: a set has millions of small messages.
  std::array<char, 4096> memory;  // of most examples
  google::protobuf::Arena arena(memory.data(), memory.size());
  auto& example =
      *google::protobuf::Arena::CreateMessage<v1::TfExample>(&arena);
  if (record->size() > std::numeric_limits<int>::max() ||
      !example.ParseFromArray(record->data(),
                              static_cast<int>(record->size()))) {
    return absl::InvalidArgumentError("no tf.train.Example");
  }
  LOCKSTEP_RETURN_IF_ERROR(AddExample(example, layout, examples));
  return true;
}

}  // namespace

absl::StatusOr<ColumnLayout> ColumnLayoutOf(const ModelConfig& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSet("model.features", model.features,
                                    "the number of rows of the table that "
                                    "categories and crosses are hashed to"));
  LOCKSTEP_RETURN_IF_ERROR(CheckSet("model.embedding_rows",
                                    model.embedding_rows,
                                    "the number of rows of each embedding"));
  LOCKSTEP_RETURN_IF_ERROR(CheckSet(
      "model.categorical", static_cast<int64_t>(model.categorical.size()),
      "the names of the features that are categories"));
  LOCKSTEP_RETURN_IF_ERROR(CheckDistinct(model.categorical));
  if (model.row_limit > 0) {
    return absl::InvalidArgumentError(
        "model.row_limit is set, but categories are hashed to model.features "
        "rows, which do not grow; leave row_limit out");
  }
  ColumnLayout layout = {.categorical = model.categorical,
                         .numeric = model.numeric,
                         .label = model.label,
                         .wide_rows = model.features,
                         .deep_rows = model.embedding_rows};
  for (const std::string& cross : model.crosses) {
    LOCKSTEP_ASSIGN_OR_RETURN(layout.crosses.emplace_back(),
                              PairOf(cross, model.categorical));
  }
  return layout;
}

absl::Status ParseExamples(absl::string_view bytes, const std::string& source,
                           const ColumnLayout& layout,
                           ColumnExamples& examples) {
  const size_t labels = examples.labels.size();
  const size_t wide = examples.wide.size();
  const size_t deep = examples.deep.size();
  const size_t numeric = examples.numeric.size();
  TfRecordReader reader(bytes);
  for (int64_t number = 1;; ++number) {
    const absl::StatusOr<bool> more = AddRecord(reader, layout, examples);
    if (more.ok() && *more) continue;
    if (more.ok()) return absl::OkStatus();
    // The failed record may have appended some of its features.
    examples.labels.resize(labels);
    examples.wide.resize(wide);
    examples.deep.resize(deep);
    examples.numeric.resize(numeric);
    return absl::Status(more.status().code(),
                        absl::StrCat(source, ": record ", number, ": ",
                                     more.status().message()));
  }
}

absl::Status ReadExampleFile(const std::string& path,
                             const ColumnLayout& layout,
                             ColumnExamples& examples) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, ReadDataText(path));
  return ParseExamples(bytes, path, layout, examples);
}

}  // namespace lockstep::worker
