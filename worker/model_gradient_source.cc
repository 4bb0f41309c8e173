#include "worker/model_gradient_source.h"

#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

Shape ShapeOf(const VariableSpec& variable) {
  return Shape(variable.shape.begin(), variable.shape.end());
}

ElementType TypeOf(const VariableSpec& variable) {
  return variable.dtype == DType::kFloat64 ? ElementType::kFloat64
                                           : ElementType::kFloat32;
}

}  // namespace

std::vector<ConstTensor> ValueViews(const std::vector<VariableSpec>& variables,
                                    const ParameterMemory& memory) {
  std::vector<ConstTensor> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    views.emplace_back(TypeOf(variables[i]), ShapeOf(variables[i]),
                       memory.value(i).data());
  }
  return views;
}

std::vector<Tensor> GradientViews(const std::vector<VariableSpec>& variables,
                                  const ParameterMemory& memory) {
  std::vector<Tensor> views;
  for (size_t i = 0; i < variables.size(); ++i) {
    views.emplace_back(TypeOf(variables[i]), ShapeOf(variables[i]),
                       memory.gradient(i).data());
  }
  return views;
}

ModelGradientSource::ModelGradientSource(Model& model, const ModelInput& input,
                                         ComputeBackend& backend,
                                         BatchSource batches,
                                         const ParameterMemory& memory)
    : model_(model),
      input_(input),
      backend_(backend),
      batches_(std::move(batches)),
      values_(ValueViews(model.variables(), memory)),
      gradients_(GradientViews(model.variables(), memory)) {}

absl::StatusOr<GradientResult> ModelGradientSource::Compute(
    int64_t index, const PassHooks& hooks) {
  LOCKSTEP_ASSIGN_OR_RETURN(Batch batch, batches_.Get(index));
  BatchView view;
  view.images = ConstTensor::Of<float>(
      batch.images, {batch.size, input_.height, input_.width, input_.channels});
  view.labels = batch.labels;
  LOCKSTEP_ASSIGN_OR_RETURN(
      double loss,
      model_.Gradients(backend_, view, values_, gradients_, hooks));
  return GradientResult{loss, batch.size};
}

}  // namespace lockstep
