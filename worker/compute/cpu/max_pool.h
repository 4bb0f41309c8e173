#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_MAX_POOL_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_MAX_POOL_H_

#include <cstdint>

namespace lockstep::cpu {

// Sizes of what is pooled; the result has half the height and width, rounded
// up.
struct PoolShape {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
};

// As ComputeBackend::MaxPool2x2(). A NaN in a window is its largest value.
// T is float or double.
template <typename T>
void MaxPool2x2(const PoolShape& shape, const T* in, T* out, uint8_t* argmax);

template <typename T>
void MaxPool2x2Gradient(const PoolShape& shape, const uint8_t* argmax,
                        const T* out_gradient, T* in_gradient);

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_MAX_POOL_H_
