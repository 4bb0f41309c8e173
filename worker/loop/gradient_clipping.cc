#include "worker/loop/gradient_clipping.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/element_operations.h"
#include "common/numeric/float16.h"

// Compiled with -ffp-contract=off. Functions that do arithmetic are not inlined
// beside a ScopedFlushDenormals: the compiler may move arithmetic across the
// change of the floating-point mode.
namespace lockstep::worker {
namespace {

#define LOCKSTEP_NOINLINE __attribute__((noinline))

template <typename T>
T FromNumber(double value) {
  return static_cast<T>(value);
}
template <>
Float16 FromNumber<Float16>(double value) {
  return ToFloat16(value);
}

double ToNumber(double value) { return value; }
double ToNumber(Float16 value) { return ToFloat(value); }

// The number of elements that TensorFlow adds at a time, in one instruction of
// 256 bits (float16 computes eight at a time, too). The order of additions
// below depends on it.
template <typename T>
inline constexpr size_t kLanes = sizeof(T) == 8 ? 4 : 8;

template <typename T>
using Lanes = std::array<T, kLanes<T>>;

template <typename T>
void Add(const T* values, Lanes<T>& lanes) {
  for (size_t j = 0; j < lanes.size(); ++j) lanes[j] = lanes[j] + values[j];
}

template <typename T>
Lanes<T> Load(const T* values) {
  Lanes<T> lanes;
  std::copy(values, values + lanes.size(), lanes.begin());
  return lanes;
}

// Adds lane j + half to lane j until one lane is left. Float16 lanes are added
// in float32 and rounded once at the end.
template <typename T>
T Fold(const Lanes<T>& lanes) {
  using Wide = std::conditional_t<std::is_same_v<T, Float16>, float, T>;
  std::array<Wide, kLanes<T>> wide;
  for (size_t j = 0; j < wide.size(); ++j) {
    wide[j] = static_cast<Wide>(ToNumber(lanes[j]));
  }
  for (size_t half = wide.size() / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) wide[j] = wide[j] + wide[j + half];
  }
  return FromNumber<T>(wide[0]);
}

// Returns the sum of the first `groups` full groups of lanes; `groups` must be
// at least 1. From four groups on, four independent sums advance side by side,
// as in TensorFlow's unrolled loop; the order decides the last digits.
template <typename T>
T SumGroups(const T* values, size_t groups) {
  Lanes<T> total = Load(values);
  size_t next = 1;
  if (groups >= 4) {
    std::array<Lanes<T>, 4> sets;
    for (size_t s = 0; s < 4; ++s) sets[s] = Load(values + s * kLanes<T>);
    for (next = 4; next + 4 <= groups; next += 4) {
      for (size_t s = 0; s < 4; ++s) {
        Add(values + (next + s) * kLanes<T>, sets[s]);
      }
    }
    total = sets[0];
    for (size_t s = 1; s < 4; ++s) Add(sets[s].data(), total);
  }
  for (; next < groups; ++next) Add(values + next * kLanes<T>, total);
  return Fold<T>(total);
}

// Returns the sum of full groups of lanes plus that of the elements left over,
// which are added one by one.
template <typename T>
T Sum(const std::vector<T>& values) {
  const size_t groups = values.size() / kLanes<T>;
  T rest = FromFloat<T>(0);
  for (size_t i = groups * kLanes<T>; i < values.size(); ++i) {
    rest = rest + values[i];
  }
  return groups == 0 ? rest : rest + SumGroups(values.data(), groups);
}

// TensorFlow's global_norm adds l2_loss(gradient), half the sum of squares,
// over all gradients and doubles the sum; rounding follows the same steps.
template <typename T>
T HalfSquares(absl::Span<const std::byte> gradient) {
  std::vector<T> halves(gradient.size() / sizeof(T));
  const T half = FromFloat<T>(0.5f);
  for (size_t i = 0; i < halves.size(); ++i) {
    const T x = LoadElement<T>(gradient.data(), i);
    halves[i] = (x * x) * half;
  }
  return Sum(halves);
}

template <typename T>
LOCKSTEP_NOINLINE double Norm(
    absl::Span<const absl::Span<const std::byte>> gradients) {
  std::vector<T> sums;
  for (const auto& gradient : gradients) {
    sums.push_back(HalfSquares<T>(gradient));
  }
  return ToNumber(Root(Sum(sums) * FromFloat<T>(2)));
}

template <typename T>
LOCKSTEP_NOINLINE void Scale(
    double clip_norm, double norm,
    absl::Span<const absl::Span<std::byte>> gradients) {
  const T one = FromFloat<T>(1);
  const T clip = FromNumber<T>(clip_norm);
  const T length = FromNumber<T>(norm);
  // TensorFlow's formula: clip_norm * min(1 / norm, 1 / clip_norm) times the
  // gradient. Shorter equivalents round differently.
  const T by_norm = one / length;
  const T by_clip = one / clip;
  // A finite norm adds 0; infinity minus infinity and NaN make the factor NaN.
  const T factor =
      clip * (by_clip < by_norm ? by_clip : by_norm) + (length - length);
  for (const auto& gradient : gradients) {
    T* x = reinterpret_cast<T*>(gradient.data());
    const size_t count = gradient.size() / sizeof(T);
    for (size_t i = 0; i < count; ++i) x[i] = x[i] * factor;
  }
}

template <typename T>
LOCKSTEP_NOINLINE void ScaleOne(double clip_norm,
                                absl::Span<std::byte> gradient) {
  const T clip = FromNumber<T>(clip_norm);
  const absl::Span<const std::byte> values = gradient;
  const T norm = FromNumber<T>(Norm<T>(absl::MakeConstSpan(&values, 1)));
  const T divisor = norm > clip ? norm : clip;
  T* x = reinterpret_cast<T*>(gradient.data());
  const size_t count = gradient.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) x[i] = (x[i] * clip) / divisor;
}

template <typename T>
LOCKSTEP_NOINLINE void Limit(double limit, absl::Span<std::byte> gradient) {
  const T high = FromNumber<T>(limit);
  const T low = -high;
  T* x = reinterpret_cast<T*>(gradient.data());
  const size_t count = gradient.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    // Both comparisons are false for NaN, which stays.
    if (x[i] > high) x[i] = high;
    if (x[i] < low) x[i] = low;
  }
}

// A bfloat16 gradient in float32.
std::vector<float> AsFloats(absl::Span<const std::byte> gradient) {
  std::vector<float> floats(gradient.size() / kBFloat16Size);
  ExpandBFloat16(floats.size(), gradient.data(), floats.data());
  return floats;
}

absl::Span<std::byte> BytesOf(std::vector<float>& floats) {
  return {reinterpret_cast<std::byte*>(floats.data()),
          floats.size() * sizeof(float)};
}

// Applies `change` to a float32 copy of the gradient and rounds the result to
// bfloat16: there is no arithmetic in bfloat16.
template <typename Change>
void AsBFloat16(absl::Span<std::byte> gradient, const Change& change) {
  std::vector<float> floats = AsFloats(gradient);
  change(BytesOf(floats));
  RoundToBFloat16(floats.size(), BytesOf(floats).data(), gradient.data());
}

double NormOfBFloat16(absl::Span<const absl::Span<const std::byte>> gradients) {
  std::vector<std::vector<float>> floats;
  for (const auto& gradient : gradients) floats.push_back(AsFloats(gradient));
  std::vector<absl::Span<const std::byte>> bytes;
  for (std::vector<float>& each : floats) bytes.push_back(BytesOf(each));
  return Norm<float>(bytes);
}

}  // namespace

double GlobalNorm(DType dtype,
                  absl::Span<const absl::Span<const std::byte>> gradients) {
  if (gradients.empty()) return 0;
  const ScopedFlushDenormals flush;
  switch (dtype) {
    case DType::kFloat16:
      return Norm<Float16>(gradients);
    case DType::kFloat32:
      return Norm<float>(gradients);
    case DType::kBFloat16:
      return NormOfBFloat16(gradients);
    case DType::kFloat64:
      break;
  }
  return Norm<double>(gradients);
}

void ClipByGlobalNorm(DType dtype, double clip_norm, double norm,
                      absl::Span<const absl::Span<std::byte>> gradients) {
  const ScopedFlushDenormals flush;
  switch (dtype) {
    case DType::kFloat16:
      return Scale<Float16>(clip_norm, norm, gradients);
    case DType::kFloat32:
      return Scale<float>(clip_norm, norm, gradients);
    case DType::kFloat64:
      return Scale<double>(clip_norm, norm, gradients);
    case DType::kBFloat16:
      for (const absl::Span<std::byte> gradient : gradients) {
        AsBFloat16(gradient, [&](absl::Span<std::byte> floats) {
          Scale<float>(clip_norm, norm, {&floats, 1});
        });
      }
      return;
  }
}

void ClipByNorm(DType dtype, double clip_norm, absl::Span<std::byte> gradient) {
  const ScopedFlushDenormals flush;
  switch (dtype) {
    case DType::kFloat16:
      return ScaleOne<Float16>(clip_norm, gradient);
    case DType::kFloat32:
      return ScaleOne<float>(clip_norm, gradient);
    case DType::kFloat64:
      return ScaleOne<double>(clip_norm, gradient);
    case DType::kBFloat16:
      return AsBFloat16(gradient, [&](absl::Span<std::byte> floats) {
        ScaleOne<float>(clip_norm, floats);
      });
  }
}

void ClipByValue(DType dtype, double limit, absl::Span<std::byte> gradient) {
  switch (dtype) {
    case DType::kFloat16:
      return Limit<Float16>(limit, gradient);
    case DType::kFloat32:
      return Limit<float>(limit, gradient);
    case DType::kFloat64:
      return Limit<double>(limit, gradient);
    case DType::kBFloat16:
      return AsBFloat16(gradient, [&](absl::Span<std::byte> floats) {
        Limit<float>(limit, floats);
      });
  }
}

}  // namespace lockstep::worker
