#include "server/update/mean_reader.h"

#include <algorithm>
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
MeanReader<T>::MeanReader(absl::Span<const GradientSlices> gradients, T divisor,
                          absl::Span<const int> merges)
    : divisor_(divisor) {
  // Runs the stack of sums once without elements, to find its depth.
  int top = 0;
  int highest = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const int in_order = i == 0 ? 0 : 1;
    sources_.push_back({GradientReader(gradients[i].slices), gradients[i].type,
                        merges.empty() ? in_order : merges[i]});
    highest = std::max(highest, ++top);
    top -= sources_.back().merges;
  }
  sums_.resize(highest);
}

template <typename T>
const std::byte* MeanReader<T>::Next(size_t count) {
  size_t top = 0;
  size_t merged = 0;
  for (Source& source : sources_) {
    sums_[top].elements = Read(source, count, sums_[top].memory);
    ++top;
    for (int i = 0; i < source.merges; ++i) {
      Sum& sum = sums_[top - 2];
      const std::byte* addend = sums_[top - 1].elements;
      // The last addition, the division and the check for finite elements are
      // one pass.
      if (++merged + 1 == sources_.size()) {
        all_finite_ &= MeanKernel(count, sum.elements, addend, divisor_,
                                  sum.memory.data());
        return Bytes(sum.memory);
      }
      AddKernel(count, sum.elements, addend, sum.memory.data());
      sum.elements = Bytes(sum.memory);
      --top;
    }
  }
  // A single gradient.
  Sum& sum = sums_[0];
  all_finite_ &= AllFinite<T>(count, sum.elements);
  if (IsOne(divisor_)) return sum.elements;
  DivideKernel(count, sum.elements, divisor_, sum.memory.data());
  return Bytes(sum.memory);
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
