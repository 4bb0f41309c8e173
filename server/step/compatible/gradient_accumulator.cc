#include "server/step/compatible/gradient_accumulator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/step/element_math.h"

namespace lockstep::server {

absl::Status DenseSum::Check(const View& gradient, int64_t count) const {
  if (count > 0 && gradient.shape != absl::MakeConstSpan(shape_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient shape is [", absl::StrJoin(gradient.shape, ","),
                     "], must be [", absl::StrJoin(shape_, ","),
                     "], that of the gradients already summed in this step"));
  }
  return CheckCompatible(options_.shape, gradient.shape);
}

void DenseSum::Add(const View& gradient, int64_t count) {
  if (count == 0) {
    // The first gradient is copied and not added to zeros: -0 + 0 would be 0,
    // and a subnormal would be flushed.
    shape_.assign(gradient.shape.begin(), gradient.shape.end());
    values_.assign(gradient.values.begin(), gradient.values.end());
    return;
  }
  const FlushSubnormals mode;
  AddElements(mode, options_.dtype,
              values_.size() / ElementSize(options_.dtype),
              gradient.values.data(), values_.data());
}

DenseGradient DenseSum::HandOut(int64_t count) {
  if (options_.reduction == Reduction::kMean) {
    const FlushSubnormals mode;
    DivideElements(mode, options_.dtype,
                   values_.size() / ElementSize(options_.dtype), count,
                   values_.data());
  }
  return {options_.dtype, std::exchange(shape_, {}),
          std::exchange(values_, {})};
}

}  // namespace lockstep::server
