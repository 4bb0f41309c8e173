#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_MAX_POOL_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_MAX_POOL_H_

#include <cstdint>

#include "worker/compute/kernels/image_shapes.h"

namespace lockstep::worker::cpu {

// As ComputeBackend::MaxPool2x2(): `in` [n,h,w,c], `out` and `argmax`
// [n,ceil(h/2),ceil(w/2),c]. A NaN in a window is its largest value.
// `shape.window` must be 2. T is float or double.
template <typename T>
void MaxPool2x2(const PoolShape& shape, const T* in, T* out, uint8_t* argmax);

// Shapes as above; overwrites all of `in_gradient`.
template <typename T>
void MaxPool2x2Gradient(const PoolShape& shape, const uint8_t* argmax,
                        const T* out_gradient, T* in_gradient);

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_MAX_POOL_H_
