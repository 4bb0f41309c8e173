#include "worker/tables/table_workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/tables/log_odds.h"
#include "worker/tables/logistic_regression.h"
#include "worker/tables/skip_gram.h"
#include "worker/tables/wide_and_deep.h"

namespace lockstep::worker {
namespace {

struct Registration {
  const char* kind;
  absl::StatusOr<std::unique_ptr<TableWorkload>> (*make)(const JobConfig& job,
                                                         Purpose purpose);
};

// Every model with tables, in alphabetical order.
constexpr Registration kModels[] = {
    {"logistic_regression", MakeLogisticRegression},
    {"skip_gram", MakeSkipGram},
    {"wide_and_deep", MakeWideAndDeep},
};

// A row of a checkpoint, and its place in the result.
struct Wanted {
  int64_t row = 0;
  size_t place = 0;
};

// Returns those of `ids` that are in `keys`; both must ascend.
std::vector<Wanted> FindKeys(absl::Span<const int64_t> ids,
                             absl::Span<const int64_t> keys) {
  std::vector<Wanted> wanted;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = std::lower_bound(keys.begin(), keys.end(), ids[i]);
    if (found == keys.end() || *found != ids[i]) continue;
    wanted.push_back({found - keys.begin(), i});
  }
  return wanted;
}

// Reads rows by ranges of the table, so that few calls read many rows. `wanted`
// must ascend by row.
absl::Status ReadWanted(const CheckpointReader& checkpoint,
                        const VariableSpec& table, int64_t num_rows,
                        absl::Span<const Wanted> wanted,
                        absl::Span<float> rows) {
  const int64_t width = RowWidth(table.shape);
  // About 4 MiB of float32 in one call.
  const int64_t rows_at_a_time = std::max<int64_t>(1, (1 << 20) / width);
  std::vector<float> block;
  for (size_t i = 0; i < wanted.size();) {
    const int64_t first = wanted[i].row;
    const int64_t end = std::min(first + rows_at_a_time, num_rows);
    size_t last = i;
    // Rows between wanted ones are read too: one large read costs less than
    // many small ones.
    while (last < wanted.size() && wanted[last].row < end) ++last;
    // Up to the last wanted row of the range, and not to its end.
    block.resize((wanted[last - 1].row + 1 - first) * width);
    LOCKSTEP_RETURN_IF_ERROR(
        checkpoint.ReadRange(table.name, first * width, absl::MakeSpan(block)));
    for (; i < last; ++i) {
      std::copy_n(block.data() + (wanted[i].row - first) * width, width,
                  rows.data() + wanted[i].place * width);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableScore> TableWorkload::Score(
    const CheckpointReader& checkpoint, const OnScored& on_scored) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ScoredExample> predictions,
                            Predict(checkpoint, on_scored));
  LogOddsScore score;
  for (const ScoredExample& one : predictions) {
    score.Add(one.first, one.second);
  }
  return score.Get();
}

const std::vector<std::string>& TableModelKinds() {
  static const auto& kinds = *[] {
    auto* names = new std::vector<std::string>();
    for (const Registration& model : kModels) names->emplace_back(model.kind);
    return names;
  }();
  return kinds;
}

absl::StatusOr<std::unique_ptr<TableWorkload>> MakeTableWorkload(
    const JobConfig& job, Purpose purpose) {
  for (const Registration& model : kModels) {
    if (job.model.kind != model.kind) continue;
    if (job.data.train_files.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("data.train_files is missing, which a model of kind \"",
                       job.model.kind, "\" reads; name its files"));
    }
    if (job.model.variable_type != DType::kFloat32) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.variable_type must be float32 for a model of kind \"",
          job.model.kind, "\", which has tables"));
    }
    return model.make(job, purpose);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "model.kind \"", job.model.kind, "\" has no tables; those that have are ",
      absl::StrJoin(TableModelKinds(), ", ")));
}

absl::StatusOr<std::vector<float>> ReadTableRows(
    const CheckpointReader& checkpoint, const VariableSpec& table,
    absl::Span<const int64_t> ids) {
  LOCKSTEP_RETURN_IF_ERROR(checkpoint.CheckVariable(table));
  std::vector<float> rows(ids.size() *
                          static_cast<size_t>(RowWidth(table.shape)));
  std::vector<Wanted> wanted;
  int64_t num_rows = table.shape[0];
  if (table.grows()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> keys,
                              checkpoint.ReadKeys(table.name));
    num_rows = static_cast<int64_t>(keys.size());
    // A key that the checkpoint lacks keeps the row of zeros below.
    wanted = FindKeys(ids, keys);
  } else {
    for (size_t i = 0; i < ids.size(); ++i) wanted.push_back({ids[i], i});
  }
  LOCKSTEP_RETURN_IF_ERROR(
      ReadWanted(checkpoint, table, num_rows, wanted, absl::MakeSpan(rows)));
  return rows;
}

std::vector<size_t> PlacesOf(absl::Span<const int64_t> ids,
                             absl::Span<const int64_t> sorted) {
  std::vector<size_t> places;
  places.reserve(ids.size());
  for (const int64_t id : ids) {
    places.push_back(std::lower_bound(sorted.begin(), sorted.end(), id) -
                     sorted.begin());
  }
  return places;
}

absl::Status CheckHasExamples(int64_t count, Purpose purpose) {
  if (count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      purpose == Purpose::kTrain ? "data.train_files" : "data.test_files",
      " hold no example"));
}

absl::Span<float> Floats(absl::Span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace lockstep::worker
