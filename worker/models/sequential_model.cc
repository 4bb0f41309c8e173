#include "worker/models/sequential_model.h"

#include <utility>

#include "common/status_macros.h"
#include "worker/models/model_limits.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<Model>> SequentialModel::Make(
    const ModelInput& input, ElementType type, Layers layers) {
  if (layers.empty()) {
    return absl::InvalidArgumentError("a model must have at least one layer");
  }
  std::vector<VariableSpec> variables = VariablesOf(layers);
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
      type_(type),
      random_(AnyRandom(layers)) {
  size_t first_variable = 0;
  for (std::unique_ptr<Layer>& layer : layers) {
    Step& step = steps_.emplace_back();
    step.first_variable = first_variable;
    first_variable += layer->variables().size();
    step.layer = std::move(layer);
  }
}

absl::StatusOr<Tensor> SequentialModel::Forward(
    ComputeBackend& backend, const ConstTensor& images,
    absl::Span<const ConstTensor> variables, const PassHooks& hooks) {
  ConstTensor in = images;
  Tensor out;
  for (Step& step : steps_) {
    LOCKSTEP_RETURN_IF_ERROR(hooks.CheckWanted());
    step.in_shape = in.shape();
    step.layer->BeginPass(context());
    LOCKSTEP_RETURN_IF_ERROR(
        hooks.BeforeUse(step.first_variable, step.layer->variables().size()));
    LOCKSTEP_ASSIGN_OR_RETURN(
        out,
        step.layer->Forward(backend, in,
                            variables.subspan(step.first_variable,
                                              step.layer->variables().size())));
    in = out;
  }
  return out;
}

absl::Status SequentialModel::Backward(ComputeBackend& backend,
                                       absl::Span<const ConstTensor> variables,
                                       const Tensor& logits_gradient,
                                       absl::Span<const Tensor> gradients,
                                       const PassHooks& hooks) {
  Tensor out_gradient = logits_gradient;
  for (size_t i = steps_.size(); i-- > 0;) {
    LOCKSTEP_RETURN_IF_ERROR(hooks.CheckWanted());
    const Step& step = steps_[i];
    const size_t first = step.first_variable;
    const size_t count = step.layer->variables().size();
    Tensor in_gradient;
    if (i > 0) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          in_gradient, between_[i % 2].Reserve(backend, type_, step.in_shape));
    }
    const auto report = [&](size_t variable) {
      hooks.Report(first + variable);
    };
    LOCKSTEP_RETURN_IF_ERROR(
        step.layer->Backward({backend, variables.subspan(first, count),
                              gradients.subspan(first, count), report},
                             out_gradient, i > 0 ? &in_gradient : nullptr));
    out_gradient = in_gradient;
  }
  return absl::OkStatus();
}

}  // namespace lockstep
