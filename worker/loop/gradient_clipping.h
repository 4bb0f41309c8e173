#ifndef LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPING_H_
#define LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPING_H_

#include <cstddef>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"

// Gradient clipping as TensorFlow does it on each worker, before the push: the
// aggregate of many workers is not clipped again. Every operation rounds once
// in the dtype; subnormal numbers count as zeros, except in float16.
//
// Of a sparse gradient the rows count as they are, repeated ones apart. A
// variable without a gradient is left out of the list.
//
// Units: spans hold whole elements of the dtype and start at multiples of
//        their size. Results are of the dtype, which double holds exactly.
namespace lockstep {

// The square root of the sum of all squares; 0 of no gradients. It is the sum
// that TensorFlow makes of gradients of up to some thousand elements, in the
// same order of additions; of larger ones it may differ in the last digits.
double GlobalNorm(DType dtype,
                  absl::Span<const absl::Span<const std::byte>> gradients);

// Scales all gradients so that their global norm is at most `clip_norm`.
// `norm` is theirs, or what to take for it. A norm that is not finite makes
// every element NaN. With a smaller norm they are multiplied by
// clip_norm (1 / clip_norm), which may be one unit in the last place below 1.
void ClipByGlobalNorm(DType dtype, double clip_norm, double norm,
                      absl::Span<const absl::Span<std::byte>> gradients);

// The same for one gradient by its own norm: (gradient clip_norm) /
// max(norm, clip_norm).
void ClipByNorm(DType dtype, double clip_norm, absl::Span<std::byte> gradient);

// Limits each element to [-limit, limit]. A NaN stays one.
void ClipByValue(DType dtype, double limit, absl::Span<std::byte> gradient);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPING_H_
