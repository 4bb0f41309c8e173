#include "worker/models/sequential_model.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/models/model_limits.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<Model>> SequentialModel::Make(
    const ModelInput& input, ElementType type, Layers layers) {
  if (layers.empty()) {
    return absl::InvalidArgumentError("a model must have at least one layer");
  }
  std::vector<VariableSpec> variables = VariablesOf(layers);
  // Layers compute their shapes from sizes that are valid one by one; a product
  // may be too large.
  for (const VariableSpec& spec : variables) {
    LOCKSTEP_RETURN_IF_ERROR(CheckVariableSize(spec));
  }
  return std::unique_ptr<Model>(new SequentialModel(
      input, type, std::move(variables), std::move(layers)));
}

SequentialModel::SequentialModel(const ModelInput& input, ElementType type,
                                 std::vector<VariableSpec> variables,
                                 Layers layers)
    : Model(input, type, std::move(variables)),
      stack_(std::move(layers), type) {}

absl::StatusOr<Tensor> SequentialModel::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables, GradientPass& pass) {
  stack_.BeginPass(context());
  return stack_.Forward(backend, in, variables,
                        [&](size_t first, size_t count) {
                          return pass.NeedValues(first, count);
                        });
}

absl::Status SequentialModel::Backward(ComputeBackend& backend,
                                       absl::Span<const ConstTensor> variables,
                                       const Tensor& logits_gradient,
                                       absl::Span<const Tensor> gradients,
                                       GradientPass& pass) {
  const auto ready = [&](size_t variable) { pass.GradientReady(variable); };
  // No gradient of the input: the first layer reads data.
  return stack_.Backward({backend, variables, gradients, ready},
                         logits_gradient, nullptr,
                         [&](size_t, size_t) { return pass.CheckWanted(); });
}

}  // namespace lockstep::worker
