#include "worker/tables/logistic_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

constexpr size_t kWeights = 0;
constexpr size_t kBias = 1;
// The number of features of a growing table: any int64 but the largest, so that
// sums with index_base do not overflow.
constexpr int64_t kAnyFeature = std::numeric_limits<int64_t>::max() - 1;

}  // namespace

LogisticRegression::LogisticRegression(SparseExamples examples,
                                       int64_t num_rows, RowCut row_cut)
    : examples_(std::move(examples)),
      variables_{
          {"weights", {num_rows, 1}, DType::kFloat32, {}, row_cut},
          {"bias", {1}, DType::kFloat32, {}},
      } {}

absl::Status LogisticRegression::Prepare(absl::Span<const int64_t> examples,
                                         uint64_t /*seed*/,
                                         ParameterMemory& memory) {
  std::vector<int64_t> features;
  for (const int64_t example : examples) {
    features.insert(features.end(),
                    examples_.features.begin() + examples_.begin(example),
                    examples_.features.begin() + examples_.end(example));
  }
  LOCKSTEP_RETURN_IF_ERROR(memory.ChooseRows(kWeights, features));
  places_ = PlacesOf(features, memory.rows(kWeights).ids);
  batch_.assign(examples.begin(), examples.end());
  return absl::OkStatus();
}

absl::StatusOr<GradientResult> LogisticRegression::Compute(
    ParameterMemory& memory) {
  const absl::Span<const float> weights = Floats(memory.value(kWeights));
  const absl::Span<float> gradients = Floats(memory.gradient(kWeights));
  const double bias = Floats(memory.value(kBias))[0];
  const double share = 1 / static_cast<double>(batch_.size());
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  double loss = 0;
  double bias_gradient = 0;
  const size_t* place = places_.data();
  for (const int64_t example : batch_) {
    const size_t begin = examples_.begin(example);
    const size_t count = examples_.end(example) - begin;
    const float* values = examples_.values.data() + begin;
    double log_odds = bias;
    for (size_t i = 0; i < count; ++i) {
      log_odds += double{weights[place[i]]} * values[i];
    }
    const bool label = examples_.labels[example];
    // The gradient of the mean cross entropy with respect to the log odds.
    const double error = (Probability(log_odds) - label) * share;
    for (size_t i = 0; i < count; ++i) {
      // Adds: other examples may have the same feature.
      gradients[place[i]] += static_cast<float>(error * values[i]);
    }
    loss += CrossEntropy(label, log_odds);
    bias_gradient += error;
    place += count;
  }
  Floats(memory.gradient(kBias))[0] = static_cast<float>(bias_gradient);
  return GradientResult{loss * share, static_cast<int64_t>(batch_.size())};
}

absl::StatusOr<std::vector<ScoredExample>> LogisticRegression::Predict(
    const CheckpointReader& checkpoint, const OnScored&) {
  std::vector<int64_t> features = examples_.features;
  std::sort(features.begin(), features.end());
  // Each weight is read once: ReadTableRows() requires ascending ids.
  features.erase(std::unique(features.begin(), features.end()), features.end());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<float> weights,
      ReadTableRows(checkpoint, variables_[kWeights], features));
  float bias = 0;
  LOCKSTEP_RETURN_IF_ERROR(
      checkpoint.Read(variables_[kBias].name, absl::MakeSpan(&bias, 1)));
  const std::vector<size_t> places = PlacesOf(examples_.features, features);
  std::vector<ScoredExample> predictions;
  for (int64_t e = 0; e < examples_.size(); ++e) {
    double log_odds = bias;
    for (size_t i = examples_.begin(e); i < examples_.end(e); ++i) {
      log_odds += double{weights[places[i]]} * examples_.values[i];
    }
    predictions.push_back({log_odds, examples_.labels[e]});
  }
  return predictions;
}

absl::StatusOr<std::unique_ptr<TableWorkload>> MakeLogisticRegression(
    const JobConfig& job, Purpose purpose) {
  const bool grows = job.model.row_limit > 0;
  // Exactly one of the two must be set.
  if ((job.model.features > 0) == grows) {
    return absl::InvalidArgumentError(absl::StrCat(
        grows ? "model.features and model.row_limit are both set"
              : "model.features is missing",
        "; set it to the number of features, which is that of the rows of the "
        "table, or only model.row_limit for a table that grows"));
  }
  const LibsvmOptions options{job.data.index_base,
                              grows ? kAnyFeature : job.model.features};
  SparseExamples examples;
  for (const std::string& path : purpose == Purpose::kTrain
                                     ? job.data.train_files
                                     : job.data.test_files) {
    LOCKSTEP_RETURN_IF_ERROR(ReadLibsvmFile(path, options, examples));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckHasExamples(examples.size(), purpose));
  if (grows) {
    return std::make_unique<LogisticRegression>(
        std::move(examples), job.model.row_limit, RowCut::kKey);
  }
  return std::make_unique<LogisticRegression>(
      std::move(examples), job.model.features,
      job.model.cut_by_div ? RowCut::kDiv : RowCut::kMod);
}

}  // namespace lockstep::worker
