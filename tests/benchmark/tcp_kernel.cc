#include "tests/benchmark/tcp_kernel.h"

#include <algorithm>

#include "tests/benchmark/benchmark_model.h"

// Wide vectors are faster if the gradients are in the cache.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&            \
    !defined(__SANITIZE_THREAD__)
#define LOCKSTEP_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define LOCKSTEP_CLONES
#endif

namespace lockstep::benchmark {
namespace {

constexpr size_t kBlock = 2048;  // elements; the sum stays in the cache

LOCKSTEP_CLONES void Add(const float* __restrict__ from, size_t count,
                         float* __restrict__ sum) {
  for (size_t i = 0; i < count; ++i) sum[i] += from[i];
}

LOCKSTEP_CLONES void Apply(const float* __restrict__ sum, size_t count,
                           float scale, float* __restrict__ velocity,
                           float* __restrict__ value) {
  for (size_t i = 0; i < count; ++i) {
    velocity[i] = velocity[i] * kMomentum + sum[i] * scale;
    value[i] -= velocity[i] * kLearningRate;
  }
}

}  // namespace

void MeanMomentum(absl::Span<const float* const> gradients, size_t count,
                  float* velocity, float* value) {
  const float scale = 1.0f / static_cast<float>(gradients.size());
  float sum[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    std::copy_n(gradients[0] + first, size, sum);
    for (size_t i = 1; i < gradients.size(); ++i) {
      Add(gradients[i] + first, size, sum);
    }
    Apply(sum, size, scale, velocity + first, value + first);
  }
}

void MomentumOfSum(const float* sum, size_t count, int workers, float* velocity,
                   float* value) {
  Apply(sum, count, 1.0f / static_cast<float>(workers), velocity, value);
}

void AddTo(const float* from, size_t count, float* sum) {
  Add(from, count, sum);
}

}  // namespace lockstep::benchmark
