#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_CONV2D_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_CONV2D_H_

#include <cstdint>

#include "worker/compute/cpu/im2col.h"

// Convolution as matrix products over patches. `patches` is scratch memory of
// PatchElements() elements; images pass through it in groups, so that it stays
// small for any batch. Tensors are dense: `images` [n,h,w,c], `filters`
// [kh,kw,c,o], `out` [n,oh,ow,o], gradients as their tensors. T is float or
// double.
namespace lockstep::worker::cpu {

// Returns the elements of `patches` that a convolution of this shape needs:
// those of one image, or about a megabyte if several images fit in that.
int64_t PatchElements(const ConvShape& shape);

// Overwrites `out`.
template <typename T>
void Conv2D(const ConvShape& shape, const T* images, const T* filters,
            T* patches, T* out);

// Overwrites `images_gradient`.
template <typename T>
void Conv2DInputGradient(const ConvShape& shape, const T* filters,
                         const T* out_gradient, T* patches, T* images_gradient);

// Overwrites `filters_gradient` with the sum over all images.
template <typename T>
void Conv2DFilterGradient(const ConvShape& shape, const T* images,
                          const T* out_gradient, T* patches,
                          T* filters_gradient);

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_CONV2D_H_
