#include "server/update/update_kernels.h"

#include <bit>
#include <cstdint>

#include "common/numeric/element_operations.h"
#include "common/numeric/vector_clones.h"

// No copy of a kernel fuses a multiply with an add: this file is compiled with
// -ffp-contract=off. Elements do not depend on each other, even if `new_*` is
// `old_*`.
namespace lockstep::server {
namespace {

template <typename T>
LOCKSTEP_INLINE void GradientDescent(const UpdateBlock<T>& block, T rate) {
  const std::byte* gradient = block.gradient;
  const T* old_value = block.old_value;
  T* new_value = block.new_value;
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    new_value[i] = old_value[i] - LoadElement<T>(gradient, i) * rate;
  }
}

template <typename T, bool kNesterov>
LOCKSTEP_INLINE void Momentum(const UpdateBlock<T>& block, T rate, T momentum) {
  const auto [gradient, old_value, old_slot, new_value, new_slot] =
      MemoryWithOneSlot(block);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(gradient, i);
    const T s = old_slot[i] * momentum + g;
    new_slot[i] = s;
    new_value[i] = old_value[i] -
                   (kNesterov ? g * rate + (s * momentum) * rate : s * rate);
  }
}

template <typename T>
LOCKSTEP_INLINE void Adam(const UpdateBlock<T>& block, AdamCoefficients<T> c) {
  const auto [gradient, old_value, old_m, old_v, new_value, new_m, new_v] =
      MemoryWithTwoSlots(block);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(gradient, i);
    const T m = old_m[i] + (g - old_m[i]) * c.one_minus_beta1;
    const T v = old_v[i] + (g * g - old_v[i]) * c.one_minus_beta2;
    new_m[i] = m;
    new_v[i] = v;
    new_value[i] = old_value[i] - (m * c.alpha) / (Root(v) + c.epsilon);
  }
}

template <typename T>
LOCKSTEP_INLINE void Add(size_t count, const std::byte* a, const std::byte* b,
                         T* sum) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i)
    sum[i] = LoadElement<T>(a, i) + LoadElement<T>(b, i);
}

template <typename T>
LOCKSTEP_INLINE void Divide(size_t count, const std::byte* a, T divisor,
                            T* quotient) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i)
    quotient[i] = LoadElement<T>(a, i) / divisor;
}

// The bits of an element, and the mask of its exponent. In NaN and the
// infinities every bit of the exponent is set.
template <typename T>
struct Exponent;
template <>
struct Exponent<float> {
  using Bits = uint32_t;
  static constexpr Bits kMask = 0x7f800000;
};
template <>
struct Exponent<double> {
  using Bits = uint64_t;
  static constexpr Bits kMask = 0x7ff0000000000000;
};
template <>
struct Exponent<Float16> {
  using Bits = uint16_t;
  static constexpr Bits kMask = 0x7c00;
};

template <typename T>
LOCKSTEP_INLINE bool Mean(size_t count, const std::byte* a, const std::byte* b,
                          T divisor, T* mean) {
  using Bits = typename Exponent<T>::Bits;
  constexpr Bits kMask = Exponent<T>::kMask;
  Bits found = 0;
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    const T quotient = (LoadElement<T>(a, i) + LoadElement<T>(b, i)) / divisor;
    // Bits instead of isfinite(): the loop stays vectorisable, and the flag has
    // the width of an element.
    found |= (std::bit_cast<Bits>(quotient) & kMask) == kMask ? 1 : 0;
    mean[i] = quotient;
  }
  return found == 0;
}

// The loop has no early exit, so that it can be vectorised.
template <typename Bits>
LOCKSTEP_INLINE bool NoExponentIsFull(size_t count, const std::byte* a,
                                      Bits exponent) {
  Bits found = 0;
  for (size_t i = 0; i < count; ++i) {
    found |= (LoadElement<Bits>(a, i) & exponent) == exponent ? 1 : 0;
  }
  return found == 0;
}

}  // namespace

template <typename T>
AdamCoefficients<T> MakeAdamCoefficients(const AdamHyperparameters& hyper) {
  const T one = FromFloat<T>(1);
  const T correction = Root(one - FromFloat<T>(hyper.beta2_power));
  AdamCoefficients<T> c;
  // TensorFlow folds both bias corrections into the rate, so epsilon is not
  // corrected.
  c.alpha = (FromFloat<T>(hyper.learning_rate) * correction) /
            (one - FromFloat<T>(hyper.beta1_power));
  c.one_minus_beta1 = one - FromFloat<T>(hyper.beta1);
  c.one_minus_beta2 = one - FromFloat<T>(hyper.beta2);
  c.epsilon = FromFloat<T>(hyper.epsilon);
  return c;
}

template AdamCoefficients<float> MakeAdamCoefficients<float>(
    const AdamHyperparameters& hyper);
template AdamCoefficients<double> MakeAdamCoefficients<double>(
    const AdamHyperparameters& hyper);
template AdamCoefficients<Float16> MakeAdamCoefficients<Float16>(
    const AdamHyperparameters& hyper);

float Product(float a, float b) { return a * b; }

LOCKSTEP_CLONES bool AllFiniteFloat(size_t count, const std::byte* a) {
  return NoExponentIsFull(count, a, Exponent<float>::kMask);
}

LOCKSTEP_CLONES bool AllFiniteBFloat16(size_t count, const std::byte* a) {
  return NoExponentIsFull<uint16_t>(count, a, 0x7f80);
}

LOCKSTEP_CLONES bool AllFiniteFloat16(size_t count, const std::byte* a) {
  return NoExponentIsFull(count, a, Exponent<Float16>::kMask);
}

LOCKSTEP_CLONES bool AllFiniteDouble(size_t count, const std::byte* a) {
  return NoExponentIsFull(count, a, Exponent<double>::kMask);
}

// Every exported kernel, for one element type.
#define LOCKSTEP_DEFINE_KERNELS(T)                                             \
  LOCKSTEP_CLONES void GradientDescentKernel(const UpdateBlock<T>& block,      \
                                             float rate) {                     \
    GradientDescent<T>(block, FromFloat<T>(rate));                             \
  }                                                                            \
  LOCKSTEP_CLONES void MomentumKernel(const UpdateBlock<T>& block, float rate, \
                                      float momentum) {                        \
    Momentum<T, false>(block, FromFloat<T>(rate), FromFloat<T>(momentum));     \
  }                                                                            \
  LOCKSTEP_CLONES void NesterovKernel(const UpdateBlock<T>& block, float rate, \
                                      float momentum) {                        \
    Momentum<T, true>(block, FromFloat<T>(rate), FromFloat<T>(momentum));      \
  }                                                                            \
  LOCKSTEP_CLONES void AdamKernel(const UpdateBlock<T>& block,                 \
                                  const AdamCoefficients<T>& coefficients) {   \
    Adam(block, coefficients);                                                 \
  }                                                                            \
  LOCKSTEP_CLONES void AddKernel(size_t count, const std::byte* a,             \
                                 const std::byte* b, T* sum) {                 \
    Add(count, a, b, sum);                                                     \
  }                                                                            \
  LOCKSTEP_CLONES bool MeanKernel(size_t count, const std::byte* a,            \
                                  const std::byte* b, T divisor, T* mean) {    \
    return Mean(count, a, b, divisor, mean);                                   \
  }                                                                            \
  LOCKSTEP_CLONES void DivideKernel(size_t count, const std::byte* a,          \
                                    T divisor, T* quotient) {                  \
    Divide(count, a, divisor, quotient);                                       \
  }

LOCKSTEP_DEFINE_KERNELS(float)
LOCKSTEP_DEFINE_KERNELS(double)
LOCKSTEP_DEFINE_KERNELS(Float16)

}  // namespace lockstep::server
