#include "worker/compute/cpu/im2col.h"

#include <algorithm>
#include <cstdint>

namespace lockstep::worker::cpu {
namespace {

// One row of the kernel at one pixel: `length` elements, `before` of them
// zeros left of the image, `inside` in it, the rest zeros right of it.
// In NHWC those inside are contiguous, in the image as in the patch.
struct Run {
  int64_t patch = 0;  // first element, within `patches`
  int64_t image = 0;  // first element inside, within `images`
  int64_t length = 0;
  int64_t before = 0;
  int64_t inside = 0;  // 0 if the kernel's row lies above or below the image
};

Run MakeRun(const ConvShape& s, int64_t image, int64_t y, int64_t x,
            int64_t kernel_y) {
  const int64_t row = y * s.stride + kernel_y - s.top();
  const int64_t left = x * s.stride - s.left();
  // Clamped twice: with large padding the kernel may lie wholly beside the
  // image, and `begin - left` may then exceed its width.
  const int64_t begin = std::clamp<int64_t>(left, 0, s.width);
  const int64_t end =
      std::clamp<int64_t>(left + s.kernel_width, begin, s.width);

  Run run;
  run.length = s.kernel_width * s.channels;
  const int64_t pixel = (image * s.out_height() + y) * s.out_width() + x;
  run.patch = pixel * s.patch() + kernel_y * run.length;
  // The whole row is zeros: `before` and `inside` stay 0, and callers fill the
  // rest.
  if (row < 0 || row >= s.height) return run;
  run.image = ((image * s.height + row) * s.width + begin) * s.channels;
  run.before =
      std::clamp<int64_t>(begin - left, 0, s.kernel_width) * s.channels;
  run.inside = (end - begin) * s.channels;
  return run;
}

// Calls visit(Run) for every row of the kernel at every pixel, in order.
template <typename Visit>
void ForEachRun(const ConvShape& s, Visit visit) {
  for (int64_t image = 0; image < s.images; ++image) {
    for (int64_t y = 0; y < s.out_height(); ++y) {
      for (int64_t x = 0; x < s.out_width(); ++x) {
        for (int64_t kernel_y = 0; kernel_y < s.kernel_height; ++kernel_y) {
          visit(MakeRun(s, image, y, x, kernel_y));
        }
      }
    }
  }
}

}  // namespace

template <typename T>
void ImagesToPatches(const ConvShape& shape, const T* images, T* patches) {
  ForEachRun(shape, [=](const Run& run) {
    T* patch = patches + run.patch;
    patch = std::fill_n(patch, run.before, T{0});
    patch = std::copy_n(images + run.image, run.inside, patch);
    std::fill_n(patch, run.length - run.before - run.inside, T{0});
  });
}

template <typename T>
void AddPatchesToImages(const ConvShape& shape, const T* patches, T* images) {
  ForEachRun(shape, [=](const Run& run) {
    const T* patch = patches + run.patch + run.before;
    T* image = images + run.image;
    for (int64_t i = 0; i < run.inside; ++i) image[i] += patch[i];
  });
}

template void ImagesToPatches(const ConvShape&, const float*, float*);
template void ImagesToPatches(const ConvShape&, const double*, double*);
template void AddPatchesToImages(const ConvShape&, const float*, float*);
template void AddPatchesToImages(const ConvShape&, const double*, double*);

}  // namespace lockstep::worker::cpu
