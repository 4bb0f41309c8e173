#ifndef LOCKSTEP_COMMON_NUMERIC_ELEMENT_OPERATIONS_H_
#define LOCKSTEP_COMMON_NUMERIC_ELEMENT_OPERATIONS_H_

#include <cmath>
#include <cstddef>
#include <cstring>

#include "common/numeric/float16.h"
#include "common/numeric/vector_clones.h"

// Operations of TensorFlow's rules besides + - * and /, for float, double and
// Float16. Only for the .cc files of kernels: they are compiled with
// -ffp-contract=off, so that every operation rounds once.
namespace lockstep {

// TensorFlow processes elements in groups of this size, and the remainder one
// by one. Only ReciprocalRoot() in float16 depends on it.
inline constexpr size_t kGroup = 8;

// Converts a hyper-parameter; hyper-parameters are float32 first, as in
// TensorFlow.
template <typename T>
LOCKSTEP_INLINE T FromFloat(float value) {
  return static_cast<T>(value);
}
template <>
LOCKSTEP_INLINE Float16 FromFloat<Float16>(float value) {
  return ToFloat16(value);
}

template <typename T>
LOCKSTEP_INLINE T Root(T x) {
  return std::sqrt(x);
}
LOCKSTEP_INLINE Float16 Root(Float16 x) {
  return ToFloat16(std::sqrt(ToFloat(x)));
}

template <typename T>
LOCKSTEP_INLINE T Power(T x, T exponent) {
  return std::pow(x, exponent);
}
LOCKSTEP_INLINE Float16 Power(Float16 x, Float16 exponent) {
  return ToFloat16(std::pow(ToFloat(x), ToFloat(exponent)));
}

// 1 / sqrt(x), rounded twice. Groups of float16 round once.
template <typename T>
LOCKSTEP_INLINE T ReciprocalRoot(T x, bool /*in_group*/) {
  return T{1} / std::sqrt(x);
}
LOCKSTEP_INLINE Float16 ReciprocalRoot(Float16 x, bool in_group) {
  if (in_group) return ToFloat16(1.0f / std::sqrt(ToFloat(x)));
  return FromFloat<Float16>(1) / Root(x);
}

template <typename T>
LOCKSTEP_INLINE T LoadElement(const std::byte* bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_ELEMENT_OPERATIONS_H_
