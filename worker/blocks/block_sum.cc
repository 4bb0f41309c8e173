#include "worker/blocks/block_sum.h"

#include <algorithm>

#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"
#include "common/plan/number_tree.h"
#include "server/update/update_kernels.h"

namespace lockstep::worker {
namespace {

template <typename T>
void AddAs(absl::Span<const std::byte> addend, absl::Span<std::byte> sum) {
  const ScopedFlushDenormals flush;
  // The order of two terms does not matter to a sum of two.
  server::AddKernel(sum.size() / sizeof(T), sum.data(), addend.data(),
                    reinterpret_cast<T*>(sum.data()));
}

void Add(DType dtype, absl::Span<const std::byte> addend,
         absl::Span<std::byte> sum) {
  switch (dtype) {
    case DType::kFloat16:
      return AddAs<Float16>(addend, sum);
    case DType::kFloat32:
      return AddAs<float>(addend, sum);
    case DType::kFloat64:
      return AddAs<double>(addend, sum);
    case DType::kBFloat16:
      break;
  }
}

}  // namespace

bool BlockSum::Add(int index, int count, DType dtype,
                   absl::Span<std::byte> gradient, bool absent) {
  for (int merges = MergesAfter(index, count); merges > 0; --merges) {
    const Entry& left = stack_[--top_];
    if (left.absent) continue;
    if (absent) {
      std::copy(left.sum.begin(), left.sum.end(), gradient.begin());
    } else {
      worker::Add(dtype, left.sum, gradient);
    }
    absent = false;
  }
  if (index + 1 < count) {
    if (stack_.size() == top_) stack_.emplace_back();
    Entry& entry = stack_[top_++];
    entry.absent = absent;
    if (!absent) entry.sum.assign(gradient.begin(), gradient.end());
  }
  return !absent;
}

}  // namespace lockstep::worker
