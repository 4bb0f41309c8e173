#include "worker/tables/wide_and_deep.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/registry.h"
#include "worker/models/layers/dense_layer.h"
#include "worker/models/model_limits.h"
#include "worker/tables/log_odds.h"

namespace lockstep::worker {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr size_t kWide = 0;
constexpr int64_t kPredictedAtATime = 8192;  // examples

Layers DeepLayers(const WideAndDeep::Options& options, size_t inputs) {
  Layers layers;
  AppendDense(static_cast<int64_t>(inputs), options.hidden_units,
              /*outputs=*/1, kFloat, layers);
  return layers;
}

// Returns the variables of the tables, then those of `layers`.
std::vector<VariableSpec> AllVariables(const WideAndDeep::Options& options,
                                       const ColumnLayout& layout,
                                       const Layer& layers) {
  std::vector<VariableSpec> variables = {{"wide/weights",
                                          {layout.wide_rows, 1},
                                          DType::kFloat32,
                                          {},
                                          options.row_cut}};
  // The default deviation of TensorFlow's embedding_column.
  const double deviation =
      1 / std::sqrt(static_cast<double>(options.embedding_dim));
  for (const std::string& name : layout.categorical) {
    variables.push_back({absl::StrCat("embedding/", name),
                         {layout.deep_rows, options.embedding_dim},
                         DType::kFloat32,
                         {Initializer::Kind::kTruncatedNormal, 0, deviation},
                         options.row_cut});
  }
  variables.insert(variables.end(), layers.variables().begin(),
                   layers.variables().end());
  return variables;
}

Shape ShapeOf(const VariableSpec& variable) {
  return Shape(variable.shape.begin(), variable.shape.end());
}

}  // namespace

WideAndDeep::WideAndDeep(const Options& options, ColumnLayout layout,
                         ColumnExamples examples,
                         std::unique_ptr<ComputeBackend> backend)
    : options_(options),
      layout_(std::move(layout)),
      examples_(std::move(examples)),
      backend_(std::move(backend)),
      layers_(DeepLayers(options, inputs()), kFloat),
      variables_(AllVariables(options, layout_, layers_)),
      places_(first_dense()) {}

absl::Status WideAndDeep::Choose(size_t table, const std::vector<int64_t>& ids,
                                 ParameterMemory& memory) {
  LOCKSTEP_RETURN_IF_ERROR(memory.ChooseRows(table, ids));
  // ChooseRows() sorts and removes duplicates, so ids and rows differ in order.
  places_[table] = PlacesOf(ids, memory.rows(table).ids);
  return absl::OkStatus();
}

absl::Status WideAndDeep::Prepare(absl::Span<const int64_t> examples,
                                  uint64_t /*seed*/, ParameterMemory& memory) {
  const size_t categories = layout_.categorical.size();
  const size_t columns = layout_.wide_columns();
  std::vector<int64_t> wide;
  for (const int64_t example : examples) {
    const auto first =
        examples_.wide.begin() + static_cast<ptrdiff_t>(example * columns);
    wide.insert(wide.end(), first, first + static_cast<ptrdiff_t>(columns));
  }
  LOCKSTEP_RETURN_IF_ERROR(Choose(kWide, wide, memory));
  for (size_t c = 0; c < categories; ++c) {
    std::vector<int64_t> deep;
    for (const int64_t example : examples) {
      deep.push_back(examples_.deep[example * categories + c]);
    }
    LOCKSTEP_RETURN_IF_ERROR(Choose(kWide + 1 + c, deep, memory));
  }
  batch_.assign(examples.begin(), examples.end());
  return absl::OkStatus();
}

void WideAndDeep::FillInputs(const ParameterMemory& memory, float* to) const {
  const size_t categories = layout_.categorical.size();
  const size_t numbers = layout_.numeric.size();
  for (size_t i = 0; i < batch_.size(); ++i) {
    for (size_t c = 0; c < categories; ++c) {
      const float* rows = Floats(memory.value(kWide + 1 + c)).data();
      // A row of the input: one embedding of each category, then the numbers.
      to = std::copy_n(rows + places_[kWide + 1 + c][i] * dim(), dim(), to);
    }
    to = std::copy_n(examples_.numeric.data() + batch_[i] * numbers, numbers,
                     to);
  }
}

absl::StatusOr<std::vector<double>> WideAndDeep::LogOdds(
    const ParameterMemory& memory) {
  const auto count = static_cast<int64_t>(batch_.size());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor in,
      inputs_memory_.Reserve(*backend_, kFloat,
                             {count, static_cast<int64_t>(inputs())}));
  FillInputs(memory, in.data<float>());
  std::vector<ConstTensor> values;
  for (size_t v = first_dense(); v < variables_.size(); ++v) {
    values.emplace_back(kFloat, ShapeOf(variables_[v]), memory.value(v).data());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor logits,
                            layers_.Forward(*backend_, in, values));
  const absl::Span<const float> weights = Floats(memory.value(kWide));
  const size_t* place = places_[kWide].data();
  std::vector<double> log_odds;
  for (int64_t i = 0; i < count; ++i) {
    // The log odds are the sum of the deep part's logit and the wide part's
    // weights.
    double sum = logits.data<float>()[i];
    for (size_t c = 0; c < layout_.wide_columns(); ++c)
      sum += weights[*place++];
    log_odds.push_back(sum);
  }
  return log_odds;
}

absl::StatusOr<GradientResult> WideAndDeep::Compute(ParameterMemory& memory) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> log_odds,
                            LogOdds(memory));
  const double share = 1 / static_cast<double>(batch_.size());
  std::vector<double> errors;
  double loss = 0;
  for (size_t i = 0; i < batch_.size(); ++i) {
    const bool label = examples_.labels[batch_[i]];
    // The gradient of the mean cross entropy with respect to the log odds.
    errors.push_back((Probability(log_odds[i]) - label) * share);
    loss += CrossEntropy(label, log_odds[i]);
  }
  LOCKSTEP_RETURN_IF_ERROR(WriteGradients(errors, memory));
  return GradientResult{loss * share, static_cast<int64_t>(batch_.size())};
}

absl::Status WideAndDeep::WriteGradients(absl::Span<const double> errors,
                                         ParameterMemory& memory) {
  const auto count = static_cast<int64_t>(errors.size());
  // The layers overwrite this gradient; the wide part reads `errors` itself.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor of_logits,
      logits_gradient_memory_.Reserve(*backend_, kFloat, {count, 1}));
  std::copy(errors.begin(), errors.end(), of_logits.data<float>());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor of_inputs,
      inputs_gradient_memory_.Reserve(*backend_, kFloat,
                                      {count, static_cast<int64_t>(inputs())}));
  std::vector<ConstTensor> values;
  std::vector<Tensor> gradients;
  for (size_t v = first_dense(); v < variables_.size(); ++v) {
    const Shape shape = ShapeOf(variables_[v]);
    values.emplace_back(kFloat, shape, memory.value(v).data());
    gradients.emplace_back(kFloat, shape, memory.gradient(v).data());
  }
  LOCKSTEP_RETURN_IF_ERROR(layers_.Backward(
      {*backend_, values, gradients, [](size_t) {}}, of_logits, &of_inputs));
  WriteEmbeddingGradients(of_inputs.data<float>(), memory);
  WriteWideGradients(errors, memory);
  return absl::OkStatus();
}

void WideAndDeep::WriteWideGradients(absl::Span<const double> errors,
                                     ParameterMemory& memory) const {
  const absl::Span<float> gradients = Floats(memory.gradient(kWide));
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  const size_t* place = places_[kWide].data();
  for (const double error : errors) {
    for (size_t c = 0; c < layout_.wide_columns(); ++c) {
      // Adds: two columns, or two examples, may have the same row.
      gradients[*place++] += static_cast<float>(error);
    }
  }
}

void WideAndDeep::WriteEmbeddingGradients(const float* of_inputs,
                                          ParameterMemory& memory) const {
  for (size_t c = 0; c < layout_.categorical.size(); ++c) {
    const absl::Span<float> gradients = Floats(memory.gradient(kWide + 1 + c));
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    // Category c's embedding begins at column c * dim() of each input.
    const float* from = of_inputs + c * dim();
    for (const size_t place : places_[kWide + 1 + c]) {
      float* to = &gradients[place * dim()];
      for (size_t d = 0; d < dim(); ++d) to[d] += from[d];
      from += inputs();
    }
  }
}

absl::Status WideAndDeep::Load(const CheckpointReader& checkpoint,
                               ParameterMemory& memory) const {
  for (size_t v = 0; v < variables_.size(); ++v) {
    const absl::Span<float> values = Floats(memory.value(v));
    if (!variables_[v].is_table()) {
      // ReadTableRows() checks tables itself.
      LOCKSTEP_RETURN_IF_ERROR(checkpoint.CheckVariable(variables_[v]));
      LOCKSTEP_RETURN_IF_ERROR(checkpoint.Read(variables_[v].name, values));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<float> rows,
        ReadTableRows(checkpoint, variables_[v], memory.rows(v).ids));
    std::copy(rows.begin(), rows.end(), values.begin());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ScoredExample>> WideAndDeep::Predict(
    const CheckpointReader& checkpoint, const OnScored& on_scored) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      ParameterMemory memory,
      ParameterMemory::Make(variables_, ParameterMemory::Gradients::kPrivate));
  std::vector<ScoredExample> predictions;
  for (int64_t first = 0; first < num_examples(); first += kPredictedAtATime) {
    std::vector<int64_t> some(
        std::min(kPredictedAtATime, num_examples() - first));
    std::iota(some.begin(), some.end(), first);
    // Chooses the rows of these examples; Load() reads only those from the
    // checkpoint.
    LOCKSTEP_RETURN_IF_ERROR(Prepare(some, /*seed=*/0, memory));
    LOCKSTEP_RETURN_IF_ERROR(Load(checkpoint, memory));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> log_odds,
                              LogOdds(memory));
    for (size_t i = 0; i < some.size(); ++i) {
      predictions.push_back({log_odds[i], examples_.labels[some[i]]});
    }
    if (on_scored != nullptr) {
      on_scored(static_cast<int64_t>(predictions.size()), num_examples());
    }
  }
  return predictions;
}

absl::StatusOr<std::unique_ptr<TableWorkload>> MakeWideAndDeep(
    const JobConfig& job, Purpose purpose) {
  const ModelConfig& model = job.model;
  LOCKSTEP_ASSIGN_OR_RETURN(ColumnLayout layout, ColumnLayoutOf(model));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSetting("model.embedding_dim", model.embedding_dim, 1 << 20));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGiven("wide_and_deep", "model.hidden_units", model.hidden_units));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerSizes("model.hidden_units", model.hidden_units));
  const bool train = purpose == Purpose::kTrain;
  ColumnExamples examples;
  for (const std::string& path :
       train ? job.data.train_files : job.data.test_files) {
    LOCKSTEP_RETURN_IF_ERROR(ReadExampleFile(path, layout, examples));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckHasExamples(examples.size(), purpose));
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ComputeBackend> backend,
                            MakeBackend("cpu", {}));
  auto workload = std::make_unique<WideAndDeep>(
      WideAndDeep::Options{model.embedding_dim, model.hidden_units,
                           model.cut_by_div ? RowCut::kDiv : RowCut::kMod},
      std::move(layout), std::move(examples), std::move(backend));
  for (const VariableSpec& variable : workload->variables()) {
    // Servers hold tables; a worker only has some rows.
    if (variable.is_table()) continue;
    LOCKSTEP_RETURN_IF_ERROR(CheckVariableSize(variable));
  }
  return workload;
}

}  // namespace lockstep::worker
