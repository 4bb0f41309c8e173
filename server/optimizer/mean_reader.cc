#include "server/optimizer/mean_reader.h"

#include "server/optimizer/update_kernels.h"

namespace lockstep {
namespace {

template <typename T>
std::byte* Bytes(std::array<T, kBlockElements>& block) {
  return reinterpret_cast<std::byte*>(block.data());
}

}  // namespace

template <typename T>
MeanReader<T>::MeanReader(absl::Span<const GradientSlices> gradients, T divisor)
    : divisor_(divisor), readers_(gradients.begin(), gradients.end()) {}

template <typename T>
const std::byte* MeanReader<T>::Next(size_t count) {
  const std::byte* sum = Sum(count);
  if (divisor_ == T{1}) return sum;
  DivideKernel(count, sum, divisor_, sum_.data());
  return Bytes(sum_);
}

template <typename T>
const std::byte* MeanReader<T>::Sum(size_t count) {
  const size_t size = count * sizeof(T);
  const std::byte* sum = readers_[0].Next(size, Bytes(first_));
  for (size_t i = 1; i < readers_.size(); ++i) {
    AddKernel(count, sum, readers_[i].Next(size, Bytes(next_)), sum_.data());
    sum = Bytes(sum_);
  }
  return sum;
}

template class MeanReader<float>;
template class MeanReader<double>;

}  // namespace lockstep
