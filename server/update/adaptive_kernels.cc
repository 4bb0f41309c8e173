#include "server/update/adaptive_kernels.h"

#include <algorithm>

#include "common/numeric/element_operations.h"
#include "common/numeric/vector_clones.h"

// No copy of a kernel fuses a multiply with an add: this file is compiled with
// -ffp-contract=off. Elements do not depend on each other, even if `new_*` is
// `old_*`. Parentheses and factors have TensorFlow's order of operations, which
// shows in the last digit: they must not be simplified.
namespace lockstep::server {
namespace {

// Elements before this index are in whole groups; see ReciprocalRoot().
size_t GroupedElements(size_t count) { return count / kGroup * kGroup; }

template <typename T>
LOCKSTEP_INLINE void Adagrad(const UpdateBlock<T>& block, T rate) {
  const std::byte* gradient = block.gradient;
  const T* old_value = block.old_value;
  const T* old_slot = block.old_slots[0];
  T* new_value = block.new_value;
  T* new_slot = block.new_slots[0];
  const size_t grouped = GroupedElements(block.count);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(gradient, i);
    const T s = old_slot[i] + g * g;
    new_slot[i] = s;
    new_value[i] = old_value[i] - (g * rate) * ReciprocalRoot(s, i < grouped);
  }
}

template <typename T>
LOCKSTEP_INLINE void RmsProp(const UpdateBlock<T>& block,
                             const RmsPropHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T one_minus_decay = FromFloat<T>(1) - FromFloat<T>(hyper.decay);
  const T momentum = FromFloat<T>(hyper.momentum);
  const T epsilon = FromFloat<T>(hyper.epsilon);
  const std::byte* gradient = block.gradient;
  const T* old_value = block.old_value;
  const T* old_rms = block.old_slots[0];
  const T* old_momentum = block.old_slots[1];
  T* new_value = block.new_value;
  T* new_rms = block.new_slots[0];
  T* new_momentum = block.new_slots[1];
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(gradient, i);
    const T r = old_rms[i] + (g * g - old_rms[i]) * one_minus_decay;
    // Epsilon is under the root, unlike Adam's.
    const T q = old_momentum[i] * momentum + (g * rate) / Root(r + epsilon);
    new_rms[i] = r;
    new_momentum[i] = q;
    new_value[i] = old_value[i] - q;
  }
}

template <typename T>
LOCKSTEP_INLINE void CenteredRmsProp(const UpdateBlock<T>& block,
                                     const RmsPropHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T one_minus_decay = FromFloat<T>(1) - FromFloat<T>(hyper.decay);
  const T momentum = FromFloat<T>(hyper.momentum);
  const T epsilon = FromFloat<T>(hyper.epsilon);
  const std::byte* gradient = block.gradient;
  const T* old_value = block.old_value;
  const T* const* old_slots = block.old_slots;
  T* new_value = block.new_value;
  T* const* new_slots = block.new_slots;
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(gradient, i);
    // r - m * m is the variance of the gradient.
    const T r = old_slots[0][i] + (g * g - old_slots[0][i]) * one_minus_decay;
    const T m = old_slots[1][i] + (g - old_slots[1][i]) * one_minus_decay;
    const T q =
        old_slots[2][i] * momentum + (g * rate) / Root((r - m * m) + epsilon);
    new_slots[0][i] = r;
    new_slots[1][i] = m;
    new_slots[2][i] = q;
    new_value[i] = old_value[i] - q;
  }
}

template <typename T>
LOCKSTEP_INLINE void Adadelta(const UpdateBlock<T>& block,
                              const AdadeltaHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T rho = FromFloat<T>(hyper.rho);
  const T one_minus_rho = FromFloat<T>(1) - rho;
  const T epsilon = FromFloat<T>(hyper.epsilon);
  const std::byte* gradient = block.gradient;
  const T* old_value = block.old_value;
  const T* old_accum = block.old_slots[0];
  const T* old_update = block.old_slots[1];
  T* new_value = block.new_value;
  T* new_accum = block.new_slots[0];
  T* new_update = block.new_slots[1];
  const size_t grouped = GroupedElements(block.count);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(gradient, i);
    const T s = old_accum[i] * rho + (g * g) * one_minus_rho;
    const T d = (Root(old_update[i] + epsilon) *
                 ReciprocalRoot(s + epsilon, i < grouped)) *
                g;
    const T u = old_update[i] * rho + (d * d) * one_minus_rho;
    new_accum[i] = s;
    new_update[i] = u;
    new_value[i] = old_value[i] - d * rate;
  }
}

// x to the power -`power`, where -0.5 is a square root.
template <typename T, bool kRoot>
LOCKSTEP_INLINE T FtrlPower(T x, T power) {
  if constexpr (kRoot) {
    return Root(x);
  } else {
    return Power(x, -power);
  }
}

template <typename T, bool kRoot>
LOCKSTEP_INLINE void Ftrl(const UpdateBlock<T>& block,
                          const FtrlHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T power = FromFloat<T>(hyper.power);
  const T l1 = FromFloat<T>(hyper.l1);
  const T two_l2 = FromFloat<T>(2) * FromFloat<T>(hyper.l2);
  const T two_shrinkage = FromFloat<T>(2) * FromFloat<T>(hyper.shrinkage);
  // In T: a value that rounds to 0 must not take the other formula.
  const bool shrinks = FromFloat<T>(hyper.shrinkage) > FromFloat<T>(0);
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(block.gradient, i);
    const T w = block.old_value[i];
    const T n = block.old_slots[0][i];
    const T shrunk = shrinks ? g + two_shrinkage * w : g;
    const T new_n = n + g * g;
    const T new_power = FtrlPower<T, kRoot>(new_n, power);
    // Per-coordinate rates: sigma is the change of 1 / rate that this gradient
    // causes.
    const T sigma = (new_power - FtrlPower<T, kRoot>(n, power)) / rate;
    const T z = block.old_slots[1][i] + (shrunk - sigma * w);
    const T y = new_power / rate + two_l2;
    const T zero = FromFloat<T>(0);
    T value = zero;
    // z| > l1; otherwise the value is exactly 0.
    if (z > l1 || -z > l1) value = ((z > zero ? l1 : -l1) - z) / y;
    block.new_slots[0][i] = new_n;
    block.new_slots[1][i] = z;
    block.new_value[i] = value;
  }
}

template <typename T>
LOCKSTEP_INLINE void AdagradDa(const UpdateBlock<T>& block,
                               const ProximalHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T step = FromFloat<T>(static_cast<float>(hyper.step));
  const T l1 = FromFloat<T>(hyper.l1);
  const T threshold = step * l1;
  const T decay = FromFloat<T>(hyper.l2) * (step * rate);
  const bool shrinks = l1 > FromFloat<T>(0);
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(block.gradient, i);
    const T sum = block.old_slots[0][i] + g;
    const T squares = block.old_slots[1][i] + g * g;
    const T steered = shrinks ? Shrunk(sum, threshold) : sum;
    block.new_slots[0][i] = sum;
    block.new_slots[1][i] = squares;
    block.new_value[i] = -(rate * steered) / (decay + Root(squares));
  }
}

template <typename T>
LOCKSTEP_INLINE void ProximalAdagrad(const UpdateBlock<T>& block,
                                     const ProximalHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T l1 = FromFloat<T>(hyper.l1);
  const T l2 = FromFloat<T>(hyper.l2);
  const size_t grouped = GroupedElements(block.count);
  for (size_t i = 0; i < block.count; ++i) {
    const T g = LoadElement<T>(block.gradient, i);
    const T s = block.old_slots[0][i] + g * g;
    const T own_rate = rate * ReciprocalRoot(s, i < grouped);
    block.new_slots[0][i] = s;
    block.new_value[i] = ProximalStep(block.old_value[i], g, own_rate, l1, l2);
  }
}

template <typename T>
LOCKSTEP_INLINE void ProximalGradientDescent(
    const UpdateBlock<T>& block, const ProximalHyperparameters& hyper) {
  const T rate = FromFloat<T>(hyper.learning_rate);
  const T l1 = FromFloat<T>(hyper.l1);
  const T l2 = FromFloat<T>(hyper.l2);
  for (size_t i = 0; i < block.count; ++i) {
    block.new_value[i] = ProximalStep(
        block.old_value[i], LoadElement<T>(block.gradient, i), rate, l1, l2);
  }
}

}  // namespace

float EffectiveL2(float l2, float beta, float learning_rate) {
  return l2 + beta / (2.0f * std::max(learning_rate, 1e-36f));
}

// Every exported kernel, for one element type.
#define LOCKSTEP_DEFINE_KERNELS(T)                                             \
  LOCKSTEP_CLONES void AdagradKernel(const UpdateBlock<T>& block,              \
                                     float rate) {                             \
    Adagrad<T>(block, FromFloat<T>(rate));                                     \
  }                                                                            \
  LOCKSTEP_CLONES void RmsPropKernel(const UpdateBlock<T>& block,              \
                                     const RmsPropHyperparameters& hyper) {    \
    if (hyper.centered) return CenteredRmsProp(block, hyper);                  \
    RmsProp(block, hyper);                                                     \
  }                                                                            \
  LOCKSTEP_CLONES void AdadeltaKernel(const UpdateBlock<T>& block,             \
                                      const AdadeltaHyperparameters& hyper) {  \
    Adadelta(block, hyper);                                                    \
  }                                                                            \
  LOCKSTEP_CLONES void FtrlKernel(const UpdateBlock<T>& block,                 \
                                  const FtrlHyperparameters& hyper) {          \
    if (FromFloat<T>(hyper.power) == FromFloat<T>(-0.5f)) {                    \
      return Ftrl<T, true>(block, hyper);                                      \
    }                                                                          \
    Ftrl<T, false>(block, hyper);                                              \
  }                                                                            \
  LOCKSTEP_CLONES void AdagradDaKernel(const UpdateBlock<T>& block,            \
                                       const ProximalHyperparameters& hyper) { \
    AdagradDa(block, hyper);                                                   \
  }                                                                            \
  LOCKSTEP_CLONES void ProximalAdagradKernel(                                  \
      const UpdateBlock<T>& block, const ProximalHyperparameters& hyper) {     \
    ProximalAdagrad(block, hyper);                                             \
  }                                                                            \
  LOCKSTEP_CLONES void ProximalGradientDescentKernel(                          \
      const UpdateBlock<T>& block, const ProximalHyperparameters& hyper) {     \
    ProximalGradientDescent(block, hyper);                                     \
  }

LOCKSTEP_DEFINE_KERNELS(float)
LOCKSTEP_DEFINE_KERNELS(double)
LOCKSTEP_DEFINE_KERNELS(Float16)

}  // namespace lockstep::server
