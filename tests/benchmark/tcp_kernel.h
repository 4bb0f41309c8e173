#ifndef LOCKSTEP_TESTS_BENCHMARK_TCP_KERNEL_H_
#define LOCKSTEP_TESTS_BENCHMARK_TCP_KERNEL_H_

#include <cstddef>

#include "absl/types/span.h"

namespace lockstep::benchmark {

// Sums the gradients in order, averages them and applies momentum in place, in
// one pass. All have `count` elements.
void MeanMomentum(absl::Span<const float* const> gradients, size_t count,
                  float* velocity, float* value);

// Divides the sum of `workers` gradients and applies momentum in place, in one
// pass.
void MomentumOfSum(const float* sum, size_t count, int workers, float* velocity,
                   float* value);

// sum[i] += from[i]. The ranges must not overlap.
void AddTo(const float* from, size_t count, float* sum);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TCP_KERNEL_H_
