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

// From and to float64, where TensorFlow computes in it.
template <typename T>
LOCKSTEP_INLINE double ToFloat64(T x) {
  return static_cast<double>(x);
}
LOCKSTEP_INLINE double ToFloat64(Float16 x) { return ToFloat(x); }
template <typename T>
LOCKSTEP_INLINE T FromFloat64(double x) {
  return static_cast<T>(x);
}
template <>
LOCKSTEP_INLINE Float16 FromFloat64<Float16>(double x) {
  return ToFloat16(static_cast<float>(x));
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

// sign(x) max(|x| - threshold, 0). As in TensorFlow a NaN stays one: as 0 it
// would hide that training has diverged.
template <typename T>
LOCKSTEP_INLINE T Shrunk(T x, T threshold) {
  const T zero = FromFloat<T>(0);
  const T rest = (x < zero ? -x : x) - threshold;
  const T size = rest < zero || rest == zero ? zero : rest;
  return x < zero ? -size : size;
}

// w - rate g, or with l1 its shrunk form: the numerator of a proximal step.
template <typename T>
LOCKSTEP_INLINE T ProximalValue(T w, T g, T rate, T l1) {
  const T v = w - g * rate;
  return l1 > FromFloat<T>(0) ? Shrunk(v, rate * l1) : v;
}

// The result of a proximal step: ProximalValue() / (1 + l2 rate).
template <typename T>
LOCKSTEP_INLINE T ProximalStep(T w, T g, T rate, T l1, T l2) {
  return ProximalValue(w, g, rate, l1) / (FromFloat<T>(1) + l2 * rate);
}

template <typename T>
LOCKSTEP_INLINE T LoadElement(const std::byte* bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_ELEMENT_OPERATIONS_H_
