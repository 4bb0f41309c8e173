#include "server/update/mean_reader.h"

#include <type_traits>

#include "server/update/update_kernels.h"

namespace lockstep::server {
namespace {

template <typename T>
std::byte* Bytes(std::array<T, kBlockElements>& block) {
  return reinterpret_cast<std::byte*>(block.data());
}

template <typename T>
bool IsOne(T value) {
  return value == T{1};
}
bool IsOne(Float16 value) { return ToFloat(value) == 1; }

template <typename T>
constexpr bool (*AllFinite)(size_t count, const std::byte* a) = nullptr;
template <>
constexpr auto AllFinite<float> = AllFiniteFloat;
template <>
constexpr auto AllFinite<double> = AllFiniteDouble;
template <>
constexpr auto AllFinite<Float16> = AllFiniteFloat16;

}  // namespace

template <typename T>
MeanReader<T>::MeanReader(absl::Span<const GradientSlices> gradients, T divisor)
    : divisor_(divisor) {
  for (const GradientSlices& gradient : gradients) {
    sources_.push_back({GradientReader(gradient.slices), gradient.type});
  }
}

template <typename T>
const std::byte* MeanReader<T>::Next(size_t count) {
  const std::byte* sum = Read(sources_[0], count, first_);
  const size_t last = sources_.size() - 1;
  for (size_t i = 1; i < last; ++i) {
    AddKernel(count, sum, Read(sources_[i], count, next_), mean_.data());
    sum = Bytes(mean_);
  }
  // The last addition, the division and the check for finite elements are one
  // pass.
  if (last > 0) {
    const std::byte* addend = Read(sources_[last], count, next_);
    all_finite_ &= MeanKernel(count, sum, addend, divisor_, mean_.data());
    return Bytes(mean_);
  }
  all_finite_ &= AllFinite<T>(count, sum);
  if (IsOne(divisor_)) return sum;
  DivideKernel(count, sum, divisor_, mean_.data());
  return Bytes(mean_);
}

template <typename T>
const std::byte* MeanReader<T>::Read(Source& source, size_t count,
                                     std::array<T, kBlockElements>& block) {
  if constexpr (std::is_same_v<T, float>) {
    if (source.type == GradientType::kBFloat16) {
      ExpandBFloat16(count,
                     source.reader.Next(count * kBFloat16Size, packed_.data()),
                     block.data());
      return Bytes(block);
    }
  }
  return source.reader.Next(count * sizeof(T), Bytes(block));
}

template class MeanReader<float>;
template class MeanReader<double>;
template class MeanReader<Float16>;

}  // namespace lockstep::server
