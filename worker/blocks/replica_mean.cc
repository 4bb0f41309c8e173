#include "worker/blocks/replica_mean.h"

#include <algorithm>
#include <vector>

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

}  // namespace

void ReplicaMean::Add(DType dtype, absl::Span<const std::byte> gradient) {
  const size_t count = CountOf(dtype, gradient.size());
  std::vector<float> floats;
  if (dtype == DType::kBFloat16) {
    floats.resize(count);
    ExpandBFloat16(count, gradient.data(), floats.data());
    gradient = {reinterpret_cast<const std::byte*>(floats.data()),
                count * sizeof(float)};
  }
  if (terms_++ == 0) {
    sum_.assign(gradient.begin(), gradient.end());
  } else {
    Combine(TypeOfSum(dtype), Arithmetic::kAdd, count, sum_.data(),
            gradient.data());
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
