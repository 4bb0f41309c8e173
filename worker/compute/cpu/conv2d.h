#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_CONV2D_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_CONV2D_H_

#include <cstdint>

#include "worker/compute/cpu/im2col.h"

// Convolution as matrix products over patches. `patches` is scratch memory of
// PatchElements(); images go through it in groups, so that it stays small
// however large the batch is. T is float or double.
namespace lockstep::cpu {

// Elements of `patches` that a convolution of this shape needs: one image's,
// or about a megabyte's worth where images are smaller.
int64_t PatchElements(const ConvShape& shape);

template <typename T>
void Conv2D(const ConvShape& shape, const T* images, const T* filters,
            T* patches, T* out);

template <typename T>
void Conv2DInputGradient(const ConvShape& shape, const T* filters,
                         const T* out_gradient, T* patches, T* images_gradient);

template <typename T>
void Conv2DFilterGradient(const ConvShape& shape, const T* images,
                          const T* out_gradient, T* patches,
                          T* filters_gradient);

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_CONV2D_H_
