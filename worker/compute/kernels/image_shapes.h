#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_IMAGE_SHAPES_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_IMAGE_SHAPES_H_

#include <cstdint>

#include "worker/compute/kernels/division.h"
#include "worker/compute/kernels/host_device.h"

namespace lockstep::worker {

// Sizes of a convolution of `images` NHWC images: the kernel sees a pixel of
// the output every `stride` pixels, and `padding` rows and columns of zeros
// around the image; -1 stands for half the kernel, which with an odd kernel
// and stride 1 keeps height and width.
//
// Units: pixels; channels and filters are values per pixel of the input and of
//        the output.
struct ConvShape {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t filters = 0;
  int64_t stride = 1;
  int64_t padding = -1;

  // Rows of zeros above the image, and columns to its left.
  LOCKSTEP_HOST_DEVICE int64_t top() const {
    return padding < 0 ? kernel_height / 2 : padding;
  }
  LOCKSTEP_HOST_DEVICE int64_t left() const {
    return padding < 0 ? kernel_width / 2 : padding;
  }
  // Height and width of the output; 0 if the kernel does not fit.
  LOCKSTEP_HOST_DEVICE int64_t out_height() const {
    return Steps(height + 2 * top() - kernel_height);
  }
  LOCKSTEP_HOST_DEVICE int64_t out_width() const {
    return Steps(width + 2 * left() - kernel_width);
  }
  // Pixels of all images, pixels of the output, and elements of one patch: the
  // values under the kernel at one place.
  LOCKSTEP_HOST_DEVICE int64_t pixels() const {
    return images * height * width;
  }
  LOCKSTEP_HOST_DEVICE int64_t out_pixels() const {
    return images * out_height() * out_width();
  }
  LOCKSTEP_HOST_DEVICE int64_t patch() const {
    return kernel_height * kernel_width * channels;
  }
  // Returns this convolution with `count` images.
  ConvShape Of(int64_t count) const {
    ConvShape shape = *this;
    shape.images = count;
    return shape;
  }

 private:
  // Places for a kernel that has `room` to move.
  LOCKSTEP_HOST_DEVICE int64_t Steps(int64_t room) const {
    return room < 0 ? 0 : Divide(room, stride).quotient + 1;
  }
};

// Sizes of a pooling over NHWC images by square windows that do not overlap;
// those at the far edges are cut off there.
//
// Units: pixels; channels are values per pixel.
struct PoolShape {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t window = 2;

  LOCKSTEP_HOST_DEVICE int64_t out_height() const {
    return Divide(height + window - 1, window).quotient;
  }
  LOCKSTEP_HOST_DEVICE int64_t out_width() const {
    return Divide(width + window - 1, window).quotient;
  }
  LOCKSTEP_HOST_DEVICE int64_t pixels() const {
    return images * height * width;
  }
  LOCKSTEP_HOST_DEVICE int64_t out_pixels() const {
    return images * out_height() * out_width();
  }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_IMAGE_SHAPES_H_
