#include "worker/compute/tensor/element_type.h"

namespace lockstep::worker {

size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return sizeof(uint8_t);
    case ElementType::kInt32:
      return sizeof(int32_t);
    case ElementType::kFloat32:
      return sizeof(float);
    case ElementType::kFloat64:
      return sizeof(double);
  }
  return 0;
}

const char* ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  return "unknown";
}

}  // namespace lockstep::worker
