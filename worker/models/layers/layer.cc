#include "worker/models/layers/layer.h"

#include <algorithm>

namespace lockstep::worker {

bool AnyRandom(const Layers& layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return layer->random(); });
}

std::vector<VariableSpec> VariablesOf(const Layers& layers) {
  std::vector<VariableSpec> variables;
  for (const std::unique_ptr<Layer>& layer : layers) {
    variables.insert(variables.end(), layer->variables().begin(),
                     layer->variables().end());
  }
  return variables;
}

DType VariableType(ElementType type) {
  return type == ElementType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

}  // namespace lockstep::worker
