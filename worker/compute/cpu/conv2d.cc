#include "worker/compute/cpu/conv2d.h"

#include <algorithm>

#include "worker/compute/cpu/gemm.h"

namespace lockstep::worker::cpu {
namespace {

// A megabyte of floats: a group's patches should stay in a core's cache between
// the copy and the product.
constexpr int64_t kGroupElements = 1 << 18;

int64_t ImagesPerGroup(const ConvShape& shape) {
  const int64_t one = shape.Of(1).out_pixels() * shape.patch();
  const int64_t fitting = one == 0 ? 1 : kGroupElements / one;
  return std::clamp<int64_t>(fitting, 1, std::max<int64_t>(shape.images, 1));
}

// Calls visit(group, image, pixel) for each group of images: the group's shape,
// and the offset of its first element in the images, and in the output.
template <typename Visit>
void ForEachGroup(const ConvShape& shape, Visit visit) {
  const int64_t per_group = ImagesPerGroup(shape);
  for (int64_t first = 0; first < shape.images; first += per_group) {
    visit(shape.Of(std::min(per_group, shape.images - first)),
          shape.Of(first).pixels() * shape.channels,
          shape.Of(first).out_pixels() * shape.filters);
  }
}

}  // namespace

int64_t PatchElements(const ConvShape& shape) {
  return shape.Of(ImagesPerGroup(shape)).out_pixels() * shape.patch();
}

template <typename T>
void Conv2D(const ConvShape& shape, const T* images, const T* filters,
            T* patches, T* out) {
  ForEachGroup(
      shape, [&](const ConvShape& group, int64_t image, int64_t pixel) {
        ImagesToPatches(group, images + image, patches);
        Gemm({.m = group.out_pixels(), .n = shape.filters, .k = shape.patch()},
             patches, filters, /*accumulate=*/false, out + pixel);
      });
}

template <typename T>
void Conv2DInputGradient(const ConvShape& shape, const T* filters,
                         const T* out_gradient, T* patches,
                         T* images_gradient) {
  // Patches overlap, so that gradients are added to each pixel from several of
  // them.
  std::fill_n(images_gradient, shape.pixels() * shape.channels, T{0});
  ForEachGroup(
      shape, [&](const ConvShape& group, int64_t image, int64_t pixel) {
        Gemm({.m = group.out_pixels(),
              .n = shape.patch(),
              .k = shape.filters,
              .transpose_b = true},
             out_gradient + pixel, filters, /*accumulate=*/false, patches);
        AddPatchesToImages(group, patches, images_gradient + image);
      });
}

template <typename T>
void Conv2DFilterGradient(const ConvShape& shape, const T* images,
                          const T* out_gradient, T* patches,
                          T* filters_gradient) {
  // Each group adds its part. Also without images the result must be zeros.
  std::fill_n(filters_gradient, shape.patch() * shape.filters, T{0});
  ForEachGroup(shape, [&](const ConvShape& group, int64_t image,
                          int64_t pixel) {
    ImagesToPatches(group, images + image, patches);
    Gemm({.m = shape.patch(),
          .n = shape.filters,
          .k = group.out_pixels(),
          .transpose_a = true},
         patches, out_gradient + pixel, /*accumulate=*/true, filters_gradient);
  });
}

template void Conv2D(const ConvShape&, const float*, const float*, float*,
                     float*);
template void Conv2D(const ConvShape&, const double*, const double*, double*,
                     double*);
template void Conv2DInputGradient(const ConvShape&, const float*, const float*,
                                  float*, float*);
template void Conv2DInputGradient(const ConvShape&, const double*,
                                  const double*, double*, double*);
template void Conv2DFilterGradient(const ConvShape&, const float*, const float*,
                                   float*, float*);
template void Conv2DFilterGradient(const ConvShape&, const double*,
                                   const double*, double*, double*);

}  // namespace lockstep::worker::cpu
