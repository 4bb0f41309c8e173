#include "worker/compute/tensor/tensor.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::worker {

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::StatusOr<int64_t> CountElements(const Shape& shape) {
  bool empty = false;
  int64_t count = 1;  // without zero dimensions, so that no product of some
                      // dimensions overflows
  for (int64_t dim : shape) {
    empty |= dim == 0;
    if (dim < 0 || __builtin_mul_overflow(count, dim == 0 ? 1 : dim, &count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape),
                       " must have dimensions >= 0 and fewer than 2^63 "
                       "elements"));
    }
  }
  return empty ? 0 : count;
}

// Cannot overflow for shapes that CountElements() accepts; operations check
// their arguments by it.
int64_t ConstTensor::size() const {
  int64_t count = 1;
  for (int64_t dim : shape_) count *= dim;
  return count;
}

size_t ConstTensor::bytes() const {
  return static_cast<size_t>(size()) * ElementBytes(type_);
}

}  // namespace lockstep::worker
