#include "worker/compute/cpu/max_pool.h"

#include <algorithm>
#include <cmath>

namespace lockstep::worker::cpu {
namespace {

// One window; offsets are those of a pixel's first channel.
struct Window {
  int64_t in = 0;   // of the window's first pixel
  int64_t out = 0;  // of the pixel it shrinks to
  int64_t rows = 0;
  int64_t columns = 0;  // 1 instead of 2 where the image ends
};

// Calls visit(Window) for each window, in the order of the output.
template <typename Visit>
void ForEachWindow(const PoolShape& s, Visit visit) {
  int64_t out = 0;
  for (int64_t image = 0; image < s.images; ++image) {
    for (int64_t y = 0; y < s.height; y += 2) {
      for (int64_t x = 0; x < s.width; x += 2, out += s.channels) {
        const int64_t in = ((image * s.height + y) * s.width + x) * s.channels;
        visit(Window{in, out, std::min<int64_t>(2, s.height - y),
                     std::min<int64_t>(2, s.width - x)});
      }
    }
  }
}

// Calls visit(position, pixel) for each pixel of the window: its position, and
// the element that its channels start at.
template <typename Visit>
void ForEachPosition(const PoolShape& s, const Window& window, Visit visit) {
  for (int64_t dy = 0; dy < window.rows; ++dy) {
    for (int64_t dx = 0; dx < window.columns; ++dx) {
      visit(static_cast<uint8_t>(2 * dy + dx),
            window.in + (dy * s.width + dx) * s.channels);
    }
  }
}

// Keeps the larger of the values so far and those at one position.
template <typename T>
void KeepLarger(int64_t channels, const T* in, uint8_t position, T* out,
                uint8_t* argmax) {
  for (int64_t c = 0; c < channels; ++c) {
    // A NaN counts as the largest, so that pooling does not hide it.
    const bool larger = in[c] > out[c] || std::isnan(in[c]);
    out[c] = larger ? in[c] : out[c];
    argmax[c] = larger ? position : argmax[c];
  }
}

// Passes the gradient on where the largest value came from this position.
template <typename T>
void Select(int64_t channels, const uint8_t* argmax, uint8_t position,
            const T* out_gradient, T* in_gradient) {
  for (int64_t c = 0; c < channels; ++c) {
    const T gradient = out_gradient[c];
    in_gradient[c] = argmax[c] == position ? gradient : T{0};
  }
}

}  // namespace

template <typename T>
void MaxPool2x2(const PoolShape& shape, const T* in, T* out, uint8_t* argmax) {
  const int64_t n = shape.channels;
  ForEachWindow(shape, [=](const Window& window) {
    // Starts with the first pixel, so a window of -infinity, too, has a
    // position.
    std::copy_n(in + window.in, n, out + window.out);
    std::fill_n(argmax + window.out, n, uint8_t{0});
    ForEachPosition(shape, window, [=](uint8_t position, int64_t pixel) {
      KeepLarger(n, in + pixel, position, out + window.out,
                 argmax + window.out);
    });
  });
}

// Every element belongs to exactly one window, so all of `in_gradient` is
// written without being cleared first.
template <typename T>
void MaxPool2x2Gradient(const PoolShape& shape, const uint8_t* argmax,
                        const T* out_gradient, T* in_gradient) {
  const int64_t n = shape.channels;
  ForEachWindow(shape, [=](const Window& window) {
    ForEachPosition(shape, window, [=](uint8_t position, int64_t pixel) {
      Select(n, argmax + window.out, position, out_gradient + window.out,
             in_gradient + pixel);
    });
  });
}

template void MaxPool2x2(const PoolShape&, const float*, float*, uint8_t*);
template void MaxPool2x2(const PoolShape&, const double*, double*, uint8_t*);
template void MaxPool2x2Gradient(const PoolShape&, const uint8_t*, const float*,
                                 float*);
template void MaxPool2x2Gradient(const PoolShape&, const uint8_t*,
                                 const double*, double*);

}  // namespace lockstep::worker::cpu
