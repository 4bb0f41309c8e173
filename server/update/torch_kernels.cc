#include "server/update/torch_kernels.h"

#include <cmath>

#include "common/numeric/element_operations.h"
#include "common/numeric/vector_clones.h"

// Compiled with -ffp-contract=off, as update_kernels.cc.
namespace lockstep::server {
namespace {

// The type in which elements of T are computed.
template <typename T>
struct Arithmetic {
  using Type = T;
};
template <>
struct Arithmetic<Float16> {
  using Type = float;
};
template <typename T>
using ArithmeticOf = typename Arithmetic<T>::Type;

template <typename T>
LOCKSTEP_INLINE ArithmeticOf<T> Widen(T x) {
  return x;
}
template <>
LOCKSTEP_INLINE float Widen<Float16>(Float16 x) {
  return ToFloat(x);
}
template <typename T>
LOCKSTEP_INLINE T Narrow(ArithmeticOf<T> x) {
  return x;
}
template <>
LOCKSTEP_INLINE Float16 Narrow<Float16>(float x) {
  return ToFloat16(x);
}

template <typename T, bool kMomentum, bool kNesterov>
LOCKSTEP_INLINE void Sgd(const UpdateBlock<T>& block, const TorchSgd& sgd) {
  using A = ArithmeticOf<T>;
  const A rate = static_cast<A>(sgd.rate);
  const A momentum = static_cast<A>(sgd.momentum);
  const A factor = static_cast<A>(sgd.gradient_factor);
  const A decay = static_cast<A>(sgd.weight_decay);
  const auto [gradient, old_value, old_slot, new_value, new_slot] =
      MemoryWithOneSlot(block);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const A value = Widen(old_value[i]);
    A g = Widen(LoadElement<T>(gradient, i)) + value * decay;
    if (kMomentum) {
      const A s = Widen(old_slot[i]) * momentum + g * factor;
      new_slot[i] = Narrow<T>(s);
      g = kNesterov ? g + s * momentum : s;
    }
    new_value[i] = Narrow<T>(value - g * rate);
  }
}

template <typename T>
LOCKSTEP_INLINE void Adam(const UpdateBlock<T>& block, const TorchAdam& adam) {
  using A = ArithmeticOf<T>;
  const A step_size = static_cast<A>(adam.step_size);
  const A beta1 = static_cast<A>(adam.beta1);
  const A beta2 = static_cast<A>(adam.beta2);
  const A share1 = static_cast<A>(1 - adam.beta1);
  const A share2 = static_cast<A>(1 - adam.beta2);
  const A root_correction = static_cast<A>(adam.root_correction);
  const A epsilon = static_cast<A>(adam.epsilon);
  const A decay = static_cast<A>(adam.weight_decay);
  const A shrink = static_cast<A>(adam.shrink);
  const auto [gradient, old_value, old_m, old_v, new_value, new_m, new_v] =
      MemoryWithTwoSlots(block);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < block.count; ++i) {
    const A value = Widen(old_value[i]) * shrink;
    const A g = Widen(LoadElement<T>(gradient, i)) + value * decay;
    const A m = Widen(old_m[i]) * beta1 + g * share1;
    const A v = Widen(old_v[i]) * beta2 + (g * share2) * g;
    new_m[i] = Narrow<T>(m);
    new_v[i] = Narrow<T>(v);
    // The bias correction comes before epsilon, as in torch.optim.Adam.
    const A root = std::sqrt(v) / root_correction + epsilon;
    new_value[i] = Narrow<T>(value - (m * step_size) / root);
  }
}

template <typename T>
LOCKSTEP_INLINE void AnySgd(const UpdateBlock<T>& block, const TorchSgd& sgd) {
  if (sgd.momentum == 0) return Sgd<T, false, false>(block, sgd);
  return sgd.nesterov ? Sgd<T, true, true>(block, sgd)
                      : Sgd<T, true, false>(block, sgd);
}

template <typename T>
LOCKSTEP_INLINE void AddSquares(size_t count, const std::byte* elements,
                                double* lanes) {
  // Local, so that the compiler keeps the lanes in registers.
  double sums[kSquareLanes];
  for (size_t j = 0; j < kSquareLanes; ++j) sums[j] = lanes[j];
  size_t i = 0;
  for (; i + kSquareLanes <= count; i += kSquareLanes) {
    for (size_t j = 0; j < kSquareLanes; ++j) {
      const double x = Widen(LoadElement<T>(elements, i + j));
      sums[j] += x * x;
    }
  }
  for (size_t j = 0; i + j < count; ++j) {
    const double x = Widen(LoadElement<T>(elements, i + j));
    sums[j] += x * x;
  }
  for (size_t j = 0; j < kSquareLanes; ++j) lanes[j] = sums[j];
}

template <typename T>
LOCKSTEP_INLINE void Scale(size_t count, const std::byte* elements,
                           double factor, T* scaled) {
  const auto by = static_cast<ArithmeticOf<T>>(factor);
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    scaled[i] = Narrow<T>(Widen(LoadElement<T>(elements, i)) * by);
  }
}

}  // namespace

LOCKSTEP_CLONES void AddSquaresOfFloats(size_t count, const std::byte* elements,
                                        double* lanes) {
  AddSquares<float>(count, elements, lanes);
}

LOCKSTEP_CLONES void AddSquaresOfDoubles(size_t count,
                                         const std::byte* elements,
                                         double* lanes) {
  AddSquares<double>(count, elements, lanes);
}

LOCKSTEP_CLONES void AddSquaresOfFloat16s(size_t count,
                                          const std::byte* elements,
                                          double* lanes) {
  AddSquares<Float16>(count, elements, lanes);
}

TorchSgd MakeTorchSgd(const OptimizerConfig& config, double learning_rate,
                      int64_t updates, bool decays) {
  TorchSgd sgd;
  sgd.rate = learning_rate;
  sgd.momentum = config.momentum;
  // PyTorch's first update sets the momentum buffer to the gradient itself.
  sgd.gradient_factor = updates == 0 ? 1 : 1 - config.dampening;
  sgd.weight_decay = decays ? config.weight_decay : 0;
  sgd.nesterov = config.use_nesterov;
  return sgd;
}

TorchAdam MakeTorchAdam(const OptimizerConfig& config, double learning_rate,
                        int64_t updates, bool decays) {
  // Bias corrections are those of the update that is being made.
  const auto count = static_cast<double>(updates + 1);
  const double decay = decays ? config.weight_decay : 0;
  const bool decoupled = config.kind == OptimizerConfig::Kind::kAdamW;
  TorchAdam adam;
  adam.step_size = learning_rate / (1 - std::pow(config.beta1, count));
  adam.beta1 = config.beta1;
  adam.beta2 = config.beta2;
  adam.root_correction = std::sqrt(1 - std::pow(config.beta2, count));
  adam.epsilon = config.epsilon;
  adam.weight_decay = decoupled ? 0 : decay;
  // AdamW multiplies the value before the step; Adam adds decay to the
  // gradient.
  adam.shrink = decoupled ? 1 - learning_rate * decay : 1;
  return adam;
}

// Every exported kernel, for one element type.
#define LOCKSTEP_DEFINE_KERNELS(T)                                          \
  LOCKSTEP_CLONES void TorchSgdKernel(const UpdateBlock<T>& block,          \
                                      const TorchSgd& sgd) {                \
    AnySgd(block, sgd);                                                     \
  }                                                                         \
  LOCKSTEP_CLONES void TorchAdamKernel(const UpdateBlock<T>& block,         \
                                       const TorchAdam& adam) {             \
    Adam(block, adam);                                                      \
  }                                                                         \
  LOCKSTEP_CLONES void ScaleKernel(size_t count, const std::byte* elements, \
                                   double factor, T* scaled) {              \
    Scale(count, elements, factor, scaled);                                 \
  }

LOCKSTEP_DEFINE_KERNELS(float)
LOCKSTEP_DEFINE_KERNELS(double)
LOCKSTEP_DEFINE_KERNELS(Float16)

}  // namespace lockstep::server
