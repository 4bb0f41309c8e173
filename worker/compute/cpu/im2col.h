#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_

#include "worker/compute/kernels/image_shapes.h"

namespace lockstep::worker::cpu {

// Writes, for each pixel of the output, the patch of input that the kernel sees
// there: `images` [pixels, channels] becomes `patches` [out_pixels, patch], so
// that a convolution is one matrix product.
template <typename T>
void ImagesToPatches(const ConvShape& shape, const T* images, T* patches);

// The gradient of the above: adds each patch to the pixels it came from.
template <typename T>
void AddPatchesToImages(const ConvShape& shape, const T* patches, T* images);

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_
