#ifndef LOCKSTEP_WORKER_COMPUTE_TENSOR_ELEMENT_TYPE_H_
#define LOCKSTEP_WORKER_COMPUTE_TENSOR_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>

namespace lockstep::worker {

// ElementType is the type of a tensor's elements. Training runs in float32;
// float64 lets tests check gradients against differences; uint8 holds the
// positions that max-pooling records, int32 labels and the bytes of text.
enum class ElementType { kUint8, kInt32, kFloat32, kFloat64 };

// Bytes per element.
size_t ElementBytes(ElementType type);

// "uint8", "int32", "float32" or "float64".
const char* ElementTypeName(ElementType type);

// The ElementType of a C++ type.
template <typename T>
inline constexpr ElementType kElementTypeOf = [] {
  static_assert(sizeof(T) == 0,
                "tensors hold uint8_t, int32_t, float or double");
  return ElementType::kUint8;
}();
template <>
inline constexpr ElementType kElementTypeOf<uint8_t> = ElementType::kUint8;
template <>
inline constexpr ElementType kElementTypeOf<int32_t> = ElementType::kInt32;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kFloat32;
template <>
inline constexpr ElementType kElementTypeOf<double> = ElementType::kFloat64;

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_TENSOR_ELEMENT_TYPE_H_
