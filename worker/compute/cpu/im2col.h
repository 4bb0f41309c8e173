#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_

#include "worker/compute/kernels/image_shapes.h"

namespace lockstep::worker::cpu {

// Writes the patch of input under the kernel for each pixel of the output:
// `images` [pixels, channels] becomes `patches` [out_pixels, patch], so that a
// convolution is one matrix product. Taps outside of the image are zeros.
template <typename T>
void ImagesToPatches(const ConvShape& shape, const T* images, T* patches);

// The gradient of ImagesToPatches(): adds each element of `patches` to the
// pixel of `images` that it was copied from.
template <typename T>
void AddPatchesToImages(const ConvShape& shape, const T* patches, T* images);

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_
