#ifndef LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPING_H_
#define LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPING_H_

#include <cstddef>

#include "absl/types/span.h"
#include "common/numeric/dtype.h"

// Gradient clipping as TensorFlow does it on each worker, before the push: the
// aggregate of many workers is not clipped again. Every operation rounds once
// in the dtype; subnormal numbers count as zeros, except in float16.
//
// Rows of a sparse gradient that repeat an index count separately: they are not
// added first. The caller must leave variables without a gradient out of the
// list.
//
// Units: spans hold whole elements of the dtype and start at multiples of
//        their size. Results are of the dtype, which double holds exactly.
namespace lockstep::worker {

// Returns the square root of the sum of all squares; 0 without gradients. For
// gradients of up to some thousand elements it adds in TensorFlow's order; for
// larger ones the last digits may differ from TensorFlow's.
double GlobalNorm(DType dtype,
                  absl::Span<const absl::Span<const std::byte>> gradients);

// Scales all gradients so that their global norm, which is `norm`, becomes at
// most `clip_norm`. A norm that is not finite makes every element NaN. With a
// smaller norm the gradients are multiplied by clip_norm (1 / clip_norm), which
// may be one unit in the last place below 1.
void ClipByGlobalNorm(DType dtype, double clip_norm, double norm,
                      absl::Span<const absl::Span<std::byte>> gradients);

// Scales one gradient by its own norm: (gradient clip_norm) /
// max(norm, clip_norm).
void ClipByNorm(DType dtype, double clip_norm, absl::Span<std::byte> gradient);

// Limits each element to [-limit, limit]. A NaN stays NaN.
void ClipByValue(DType dtype, double limit, absl::Span<std::byte> gradient);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPING_H_
