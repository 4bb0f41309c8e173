#ifndef LOCKSTEP_SERVER_UPDATE_MOVING_AVERAGE_H_
#define LOCKSTEP_SERVER_UPDATE_MOVING_AVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/numeric/dtype.h"

// TensorFlow's exponential moving averages, bit for bit. The average (shadow)
// of a variable starts at the variable's initial value and moves towards the
// variable by a factor, 1 - decay, of what lies between:
//
//   average - (average - value) factor
//
// Every operation rounds once in the dtype; subnormal numbers count as zeros,
// except in float16.
namespace lockstep::server {

// The factor, in float32, of the class ExponentialMovingAverage. With a number
// of updates u the decay is at most (1 + u) / (10 + u), so that young averages
// move fast.
float AverageFactor(double decay, std::optional<int64_t> num_updates);

// Moves `average` towards `value`. Both hold whole elements of `dtype` and
// start at multiples of their size.
//
//   kInvalidArgument  different lengths, no whole elements, or misaligned
absl::Status UpdateAverage(DType dtype, float factor,
                           absl::Span<const std::byte> value,
                           absl::Span<std::byte> average);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_MOVING_AVERAGE_H_
