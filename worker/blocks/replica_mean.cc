#include "worker/blocks/replica_mean.h"

#include <algorithm>
#include <array>

#include "common/collective/arithmetic.h"
#include "common/numeric/bfloat16.h"

namespace lockstep::worker {
namespace {

// bfloat16 is summed and divided in float32, and rounded once at the end.
ElementType TypeOfSum(DType dtype) {
  return dtype == DType::kBFloat16 ? ElementType::kFloat32
                                   : ElementTypeOf(dtype);
}

size_t CountOf(DType dtype, size_t bytes) { return bytes / ElementSize(dtype); }

// The number of bfloat16 elements that are converted to float32 at a time.
constexpr size_t kBlock = 256;

}  // namespace

void ReplicaMean::Add(DType dtype, absl::Span<const std::byte> gradient) {
  const size_t count = CountOf(dtype, gradient.size());
  const bool first = terms_++ == 0;
  if (first) sum_.resize(count * SizeOf(TypeOfSum(dtype)));
  if (dtype == DType::kBFloat16) return AddBFloat16(first, count, gradient);
  if (first) {
    std::copy(gradient.begin(), gradient.end(), sum_.begin());
  } else {
    Combine(TypeOfSum(dtype), Arithmetic::kAdd, count, sum_.data(),
            gradient.data());
  }
}

void ReplicaMean::AddBFloat16(bool first, size_t count,
                              absl::Span<const std::byte> gradient) {
  std::array<float, kBlock> floats;
  const auto* const bytes = reinterpret_cast<const std::byte*>(floats.data());
  for (size_t i = 0; i < count; i += kBlock) {
    const size_t size = std::min(kBlock, count - i);
    ExpandBFloat16(size, gradient.data() + i * sizeof(BFloat16), floats.data());
    std::byte* const sum = sum_.data() + i * sizeof(float);
    if (first) {
      std::copy(bytes, bytes + size * sizeof(float), sum);
    } else {
      Combine(ElementType::kFloat32, Arithmetic::kAdd, size, sum, bytes);
    }
  }
}

bool ReplicaMean::Store(DType dtype, int replicas,
                        absl::Span<std::byte> gradient) {
  if (terms_ == 0) return false;
  const size_t count = CountOf(dtype, gradient.size());
  if (replicas > 1) DivideAll(TypeOfSum(dtype), count, sum_.data(), replicas);
  if (dtype == DType::kBFloat16) {
    RoundToBFloat16(count, sum_.data(), gradient.data());
  } else {
    std::copy(sum_.begin(), sum_.end(), gradient.begin());
  }
  return true;
}

}  // namespace lockstep::worker
