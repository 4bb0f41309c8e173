#ifndef LOCKSTEP_SERVER_UPDATE_MEAN_NORM_H_
#define LOCKSTEP_SERVER_UPDATE_MEAN_NORM_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"
#include "server/update/gradient_slices.h"

// Limits the norm of the mean of gradients, as torch.nn.utils.clip_grad_norm_
// does: the means of all parts are stored and measured before any of them is
// applied. Subnormal numbers count as zeros, except in float16.
//
// Units: spans hold whole elements, and start at multiples of their size.
namespace lockstep::server {

// The type of means, which SumOfSquares() needs to read one: bfloat16 is
// averaged in float32.
DType MeanType(DType dtype);

// Bytes of the mean of `elements` elements.
size_t MeanSize(DType dtype, size_t elements);

struct MeanOutcome {
  bool finite = true;  // the mean holds no NaN and no infinity
  double squares = 0;  // the sum of the squares of its elements
};

// Writes the sum of `gradients`, at least one, divided by `divisor`, to `mean`,
// rounded as Optimizer::Apply() rounds it. All must have as many elements as
// `mean`. `merges` is the order of the sum, as MeanReader takes it. Adds up no
// squares unless `measure` is set.
MeanOutcome StoreMean(DType dtype, absl::Span<const GradientSlices> gradients,
                      int64_t divisor, absl::Span<std::byte> mean,
                      absl::Span<const int> merges = {}, bool measure = true);

// The sum of the squares of elements.
double SumOfSquares(DType dtype, absl::Span<const std::byte> elements);

// Multiplies elements by `scale`.
void ScaleElements(DType dtype, double scale, absl::Span<std::byte> elements);

// The factor for means whose norm is `norm`: limit / (norm + 1e-6), at most 1;
// NaN if the norm is.
double ClippingScale(double limit, double norm);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_MEAN_NORM_H_
