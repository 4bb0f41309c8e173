#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_IMAGES_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_IMAGES_H_

#include <cstdint>

#include "worker/compute/kernels/division.h"
#include "worker/compute/kernels/host_device.h"
#include "worker/compute/kernels/image_shapes.h"

// Convolution as patches, and pooling, an element at a time. A gradient gathers
// all contributions to one element instead of scattering them, so that no two
// threads add to the same element.
//
// Kernels are those of elementwise.h. Pointers are to dense NHWC tensors; row
// is the number of a pixel in the batch, column a channel, unless said. T is
// float or double.
namespace lockstep::worker::kernels {

// The position of a pixel in a batch of height x width images.
struct Pixel {
  int64_t image;
  int64_t y;
  int64_t x;
};

// Returns the position of pixel number `index` of the batch.
LOCKSTEP_HOST_DEVICE inline Pixel PixelAt(int64_t index, int64_t height,
                                          int64_t width) {
  const Division line = Divide(index, width);
  const Division image = Divide(line.quotient, height);
  return {image.quotient, image.remainder, line.remainder};
}

// patches[row, column] = the value under tap `column` of the kernel at pixel
// `row` of the output, 0 outside of the image. Columns are (kernel row, kernel
// column, channel).
template <typename T>
struct ImagesToPatches {
  ConvShape s;
  const T* images;  // [images,height,width,channels]
  T* patches;       // [out_pixels,patch]

  LOCKSTEP_HOST_DEVICE T* Target() const { return patches; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const Pixel at = PixelAt(row, s.out_height(), s.out_width());
    const Division tap = Divide(column, s.channels);
    const Division under = Divide(tap.quotient, s.kernel_width);
    const int64_t y = at.y * s.stride + under.quotient - s.top();
    const int64_t x = at.x * s.stride + under.remainder - s.left();
    T value = 0;
    if (y >= 0 && y < s.height && x >= 0 && x < s.width) {
      const int64_t pixel = (at.image * s.height + y) * s.width + x;
      value = images[pixel * s.channels + tap.remainder];
    }
    return value;
  }
};

// The transpose of ImagesToPatches: images[row, column] = the sum of the
// patches' elements whose tap was above channel `column` of pixel `row`.
template <typename T>
struct PatchesToImages {
  ConvShape s;
  const T* patches;  // [out_pixels,patch]
  T* images;         // [images,height,width,channels]

  LOCKSTEP_HOST_DEVICE T* Target() const { return images; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const Pixel at = PixelAt(row, s.height, s.width);
    const int64_t height = s.out_height();
    const int64_t width = s.out_width();
    T sum = 0;
    for (int64_t ky = 0; ky < s.kernel_height; ++ky) {
      if (at.y + s.top() < ky) break;
      const Division y = Divide(at.y + s.top() - ky, s.stride);
      if (y.remainder != 0 || y.quotient >= height) continue;
      for (int64_t kx = 0; kx < s.kernel_width; ++kx) {
        if (at.x + s.left() < kx) break;
        const Division x = Divide(at.x + s.left() - kx, s.stride);
        if (x.remainder != 0 || x.quotient >= width) continue;
        const int64_t pixel =
            (at.image * height + y.quotient) * width + x.quotient;
        const int64_t tap = ky * s.kernel_width + kx;
        sum += patches[pixel * s.patch() + tap * s.channels + column];
      }
    }
    return sum;
  }
};

// The pixels of a window, cut off at the image's edge.
struct Window {
  int64_t first;  // its first pixel, within the batch
  int64_t rows;
  int64_t columns;
};

// The window of output pixel `row`.
LOCKSTEP_HOST_DEVICE inline Window WindowAt(const PoolShape& s, int64_t row) {
  const Pixel at = PixelAt(row, s.out_height(), s.out_width());
  const int64_t y = at.y * s.window;
  const int64_t x = at.x * s.window;
  const int64_t below = s.height - y;
  const int64_t right = s.width - x;
  return {(at.image * s.height + y) * s.width + x,
          below < s.window ? below : s.window,
          right < s.window ? right : s.window};
}

// The output pixel whose window holds pixel `row` of the input.
LOCKSTEP_HOST_DEVICE inline int64_t WindowOf(const PoolShape& s, int64_t row) {
  const Pixel at = PixelAt(row, s.height, s.width);
  return (at.image * s.out_height() + Divide(at.y, s.window).quotient) *
             s.out_width() +
         Divide(at.x, s.window).quotient;
}

// out[row, column] = the largest value of the window, NaN above all. Value()
// also stores its position window * dy + dx in `argmax`, the first one of
// equals. The window must be at most 16, so that a position fits a byte.
template <typename T>
struct MaxPool {
  PoolShape s;
  const T* in;      // [images,height,width,channels]
  T* out;           // [images,out_height,out_width,channels]
  uint8_t* argmax;  // as `out`

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const Window window = WindowAt(s, row);
    T largest = in[window.first * s.channels + column];
    int64_t position = 0;
    for (int64_t dy = 0; dy < window.rows; ++dy) {
      for (int64_t dx = 0; dx < window.columns; ++dx) {
        const T x =
            in[(window.first + dy * s.width + dx) * s.channels + column];
        if (x > largest || x != x) {  // NaN wins
          largest = x;
          position = s.window * dy + dx;
        }
      }
    }
    argmax[row * s.channels + column] = static_cast<uint8_t>(position);
    return largest;
  }
};

// in_gradient[row, column] = the gradient of the window in which that element
// was the largest, else 0.
template <typename T>
struct MaxPoolGradient {
  PoolShape s;
  const uint8_t* argmax;  // as `out_gradient`
  const T* out_gradient;  // [images,out_height,out_width,channels]
  T* in_gradient;         // [images,height,width,channels]

  LOCKSTEP_HOST_DEVICE T* Target() const { return in_gradient; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const Pixel at = PixelAt(row, s.height, s.width);
    const int64_t position = Divide(at.y, s.window).remainder * s.window +
                             Divide(at.x, s.window).remainder;
    const int64_t from = WindowOf(s, row) * s.channels + column;
    return argmax[from] == position ? out_gradient[from] : T{0};
  }
};

// out[row, column] = the mean of the window, over the pixels that it has.
template <typename T>
struct AveragePool {
  PoolShape s;
  const T* in;  // [images,height,width,channels]
  T* out;       // [images,out_height,out_width,channels]

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const Window window = WindowAt(s, row);
    T sum = 0;
    for (int64_t dy = 0; dy < window.rows; ++dy) {
      for (int64_t dx = 0; dx < window.columns; ++dx) {
        sum += in[(window.first + dy * s.width + dx) * s.channels + column];
      }
    }
    return sum / static_cast<T>(window.rows * window.columns);
  }
};

// in_gradient[row, column] = the window's gradient, divided by its pixels.
template <typename T>
struct AveragePoolGradient {
  PoolShape s;
  const T* out_gradient;  // [images,out_height,out_width,channels]
  T* in_gradient;         // [images,height,width,channels]

  LOCKSTEP_HOST_DEVICE T* Target() const { return in_gradient; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const int64_t from = WindowOf(s, row);
    const Window window = WindowAt(s, from);
    return out_gradient[from * s.channels + column] /
           static_cast<T>(window.rows * window.columns);
  }
};

}  // namespace lockstep::worker::kernels

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_IMAGES_H_
