#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_

#include <cstdint>

namespace lockstep::cpu {

// Sizes of a convolution of `images` NHWC images: stride 1, odd kernel, zeros
// around the image.
struct ConvShape {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t filters = 0;

  int64_t pixels() const { return images * height * width; }
  int64_t patch() const { return kernel_height * kernel_width * channels; }
};

// Writes, for each pixel, the patch of input that the kernel sees there:
// `images` [pixels, channels] becomes `patches` [pixels, patch], so that a
// convolution is one matrix product.
template <typename T>
void ImagesToPatches(const ConvShape& shape, const T* images, T* patches);

// The gradient of the above: adds each patch to the pixels it came from.
template <typename T>
void AddPatchesToImages(const ConvShape& shape, const T* patches, T* images);

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_IM2COL_H_
