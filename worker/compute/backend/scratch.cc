#include "worker/compute/backend/scratch.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::StatusOr<Tensor> Scratch::Reserve(ComputeBackend& backend,
                                        ElementType type, Shape shape) {
  absl::StatusOr<int64_t> count = CountElements(shape);
  if (!count.ok()) return count.status();
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(*count), ElementBytes(type),
                             &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeText(shape), " exceeds all memory"));
  }

  // Memory of another backend is of no use to this one, even if it is large
  // enough.
  if (owner_ != &backend || buffer_.bytes() < bytes) {
    absl::StatusOr<Buffer> larger = backend.Allocate(bytes);
    if (!larger.ok()) return larger.status();
    buffer_ = *std::move(larger);
    owner_ = &backend;
  }
  return Tensor(type, std::move(shape), buffer_.data());
}

}  // namespace lockstep::worker
