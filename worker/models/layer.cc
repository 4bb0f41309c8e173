#include "worker/models/layer.h"

namespace lockstep {

DType VariableType(ElementType type) {
  return type == ElementType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

}  // namespace lockstep
