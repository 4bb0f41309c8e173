#ifndef LOCKSTEP_SERVER_STEP_ELEMENT_MATH_H_
#define LOCKSTEP_SERVER_STEP_ELEMENT_MATH_H_

#include <cstddef>
#include <cstdint>

#include "common/numeric/dtype.h"
#include "server/step/flush_subnormals.h"

// The arithmetic of gradient accumulators, in the element type: every single
// operation rounds to it, and float32 and float64 flush subnormals.
//
// Units: `count` counts elements. Pointers need no alignment.
namespace lockstep::server {

// sum[i] = sum[i] + addend[i]. `sum` and `addend` must not overlap.
void AddElements(const FlushSubnormals& mode, DType dtype, size_t count,
                 const std::byte* addend, std::byte* sum);

// values[i] = values[i] / divisor, after `divisor` has been rounded to the
// element type: in float16 a divisor above 65519 is infinite, in bfloat16 one
// above 256 may be rounded.
void DivideElements(const FlushSubnormals& mode, DType dtype, size_t count,
                    int64_t divisor, std::byte* values);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_ELEMENT_MATH_H_
