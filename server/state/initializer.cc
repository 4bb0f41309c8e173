#include "server/state/initializer.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/fingerprint.h"
#include "common/float16.h"

namespace lockstep {
namespace {

// The finalizer of SplitMix64: a bijection in which every bit of the input
// moves about half of the output.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// CounterRandom gives random numbers by index, in any order.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, std::string_view name)
      : key_(Mix(Fingerprint().Add(seed).Add(name).value())) {}

  // In [0, 1), of 53 random bits. Each index has two independent draws.
  double Uniform(int64_t index, int draw) const {
    const uint64_t counter = 2 * static_cast<uint64_t>(index) + draw + 1;
    return static_cast<double>(Mix(key_ + counter * 0x9e3779b97f4a7c15) >> 11) *
           0x1p-53;
  }

  // Mean 0, standard deviation 1, by the method of Box and Muller.
  double Normal(int64_t index) const {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(index, 0)));
    return radius * std::cos(2 * std::numbers::pi * Uniform(index, 1));
  }

 private:
  const uint64_t key_;
};

template <typename T>
T Rounded(double value) {
  return static_cast<T>(value);
}
template <>
Float16 Rounded<Float16>(double value) {
  return ToFloat16(value);
}

// The neighbour of `value`, which is above `low`, towards `low`.
template <typename T>
T Below(T value, double low) {
  return std::nextafter(value, static_cast<T>(low));
}
Float16 Below(Float16 value, double low) {
  const float end = ToFloat(value);
  if (end == 0) return Float16{low < 0 ? uint16_t{0x8001} : uint16_t{0}};
  const int step = end > 0 ? -1 : 1;
  return Float16{static_cast<uint16_t>(value.bits + step)};
}

// Rounding to T may reach the upper end, which is not part of the range.
template <typename T>
T UniformIn(double low, double high, double fraction) {
  const T value = Rounded<T>(low + (high - low) * fraction);
  const T end = Rounded<T>(high);
  return value < end || low >= high ? value : Below(end, low);
}

template <typename T>
class ElementSource {
 public:
  ElementSource(const VariableSpec& spec, uint64_t seed)
      : init_(spec.initializer), random_(seed, spec.name) {
    const Fans fans = ComputeFans(spec.shape);
    limit_ = std::sqrt(6 / (fans.in + fans.out));
    deviation_ = std::sqrt(2 / fans.in);
  }

  T operator()(int64_t index) const {
    switch (init_.kind) {
      case Initializer::Kind::kConstant:
        return Rounded<T>(init_.a);
      case Initializer::Kind::kUniform:
        return UniformIn<T>(init_.a, init_.b, random_.Uniform(index, 0));
      case Initializer::Kind::kNormal:
        return Rounded<T>(init_.a + init_.b * random_.Normal(index));
      case Initializer::Kind::kGlorotUniform:
        return UniformIn<T>(-limit_, limit_, random_.Uniform(index, 0));
      case Initializer::Kind::kHeNormal:
        return Rounded<T>(deviation_ * random_.Normal(index));
    }
    return Rounded<T>(0);
  }

 private:
  const Initializer init_;
  const CounterRandom random_;
  double limit_ = 0;
  double deviation_ = 0;
};

template <typename T>
void Fill(const VariableSpec& spec, uint64_t seed, int64_t offset,
          absl::Span<std::byte> values) {
  const ElementSource<T> source(spec, seed);
  T* out = reinterpret_cast<T*>(values.data());
  const int64_t count = static_cast<int64_t>(values.size() / sizeof(T));
  for (int64_t i = 0; i < count; ++i) out[i] = source(offset + i);
}

absl::Status CheckRange(const VariableSpec& spec, int64_t offset,
                        absl::Span<const std::byte> values) {
  const size_t size = ElementSize(spec.dtype);
  if (values.size() % size != 0 ||
      reinterpret_cast<uintptr_t>(values.data()) % size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable ", spec.name, ": ", values.size(), " bytes at a multiple of ",
        size, " are needed for whole elements"));
  }
  const int64_t elements = NumElements(spec.shape);
  const auto count = static_cast<int64_t>(values.size() / size);
  if (offset >= 0 && offset <= elements && count <= elements - offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable ", spec.name, ": elements ", offset, " and ", count,
      " following leave its range of ", elements, " elements"));
}

}  // namespace

Fans ComputeFans(const std::vector<int64_t>& shape) {
  if (shape.empty()) return {};
  const size_t rank = shape.size();
  const auto last = static_cast<double>(shape[rank - 1]);
  if (rank == 1) return {last, last};
  double receptive_field = 1;
  for (size_t i = 0; i + 2 < rank; ++i) {
    receptive_field *= static_cast<double>(shape[i]);
  }
  return {static_cast<double>(shape[rank - 2]) * receptive_field,
          last * receptive_field};
}

absl::Status FillInitialValues(const VariableSpec& spec, uint64_t seed,
                               int64_t offset, absl::Span<std::byte> values) {
  if (absl::Status s = CheckRange(spec, offset, values); !s.ok()) return s;
  switch (spec.dtype) {
    case DType::kFloat32:
      Fill<float>(spec, seed, offset, values);
      return absl::OkStatus();
    case DType::kFloat64:
      Fill<double>(spec, seed, offset, values);
      return absl::OkStatus();
    case DType::kFloat16:
      Fill<Float16>(spec, seed, offset, values);
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", spec.name, " has an unknown dtype"));
}

}  // namespace lockstep
