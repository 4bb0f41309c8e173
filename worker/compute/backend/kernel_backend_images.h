#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_IMAGES_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_IMAGES_H_

#include <algorithm>
#include <cstdint>

#include "worker/compute/backend/kernel_backend_elements.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/kernels/images.h"
#include "worker/compute/kernels/strided_gemm.h"

namespace lockstep::worker {

// KernelImages has the convolutions and poolings of KernelBackend.
//
// Threads: as ComputeBackend.
template <typename Device>
class KernelImages : public KernelElements<Device> {
 public:
  // images [images, height, width, channels], filters [kernel_height,
  // kernel_width, channels, filters], out [images, out_height, out_width,
  // filters]. A product of matrices: patches [out_pixels, patch] times filters
  // [patch, filters].
  absl::Status Conv2D(const ConstTensor& images, const ConstTensor& filters,
                      const Tensor& out,
                      const Conv2DOptions& options) override {
    if (absl::Status s =
            CheckConv2D("Conv2D", {"images", images}, {"filters", filters},
                        {"out", out}, options);
        !s.ok()) {
      return s;
    }
    const ConvShape shape = MakeConvShape(images, filters, options);
    if constexpr (Device::kHasOwnLoops) {
      return this->WithOwnPatches(
          shape, out.type(), [&]<typename T>(T* patches) {
            this->device_.Conv2D(shape, images.data<T>(), filters.data<T>(),
                                 patches, out.data<T>());
          });
    }
    return kernel_backend::ForType(out.type(), [&]<typename T>(T) {
      return ForEachGroup(
          shape, out.type(),
          [&](const ConvShape& part, const Tensor& patches, int64_t image,
              int64_t pixel) -> absl::Status {
            if (absl::Status s = this->device_.Grid(
                    "Conv2D", part.out_pixels(), part.patch(),
                    kernels::ImagesToPatches<T>{part, images.data<T>() + image,
                                                patches.data<T>()});
                !s.ok()) {
              return s;
            }
            return this->device_.Gemm("Conv2D",
                                      {.m = part.out_pixels(),
                                       .n = part.filters,
                                       .k = part.patch(),
                                       .a = {.stride = part.patch()},
                                       .b = {.stride = part.filters},
                                       .out = {.stride = part.filters}},
                                      patches.data<T>(), filters.data<T>(),
                                      out.data<T>() + pixel);
          });
    });
  }

  // Shapes as in Conv2D(). Patches of the gradient are out_gradient times
  // filters transposed, and are then added up pixel by pixel.
  absl::Status Conv2DInputGradient(const ConstTensor& filters,
                                   const ConstTensor& out_gradient,
                                   const Tensor& images_gradient,
                                   const Conv2DOptions& options) override {
    if (absl::Status s = CheckConv2D(
            "Conv2DInputGradient", {"images_gradient", images_gradient},
            {"filters", filters}, {"out_gradient", out_gradient}, options);
        !s.ok()) {
      return s;
    }
    const ConvShape shape = MakeConvShape(images_gradient, filters, options);
    if constexpr (Device::kHasOwnLoops) {
      return this->WithOwnPatches(
          shape, filters.type(), [&]<typename T>(T* patches) {
            this->device_.Conv2DInputGradient(shape, filters.data<T>(),
                                              out_gradient.data<T>(), patches,
                                              images_gradient.data<T>());
          });
    }
    return kernel_backend::ForType(filters.type(), [&]<typename T>(T) {
      return ForEachGroup(
          shape, filters.type(),
          [&](const ConvShape& part, const Tensor& patches, int64_t image,
              int64_t pixel) -> absl::Status {
            if (absl::Status s = this->device_.Gemm(
                    "Conv2DInputGradient",
                    {.m = part.out_pixels(),
                     .n = part.patch(),
                     .k = part.filters,
                     .a = {.stride = part.filters},
                     .b = {.stride = part.filters, .transpose = true},
                     .out = {.stride = part.patch()}},
                    out_gradient.data<T>() + pixel, filters.data<T>(),
                    patches.data<T>());
                !s.ok()) {
              return s;
            }
            return this->device_.Grid(
                "Conv2DInputGradient", part.pixels(), part.channels,
                kernels::PatchesToImages<T>{part, patches.data<T>(),
                                            images_gradient.data<T>() + image});
          });
    });
  }

  // Shapes as in Conv2D(). Patches transposed, [patch, out_pixels], times
  // out_gradient [out_pixels, filters], added over groups of images.
  absl::Status Conv2DFilterGradient(const ConstTensor& images,
                                    const ConstTensor& out_gradient,
                                    const Tensor& filters_gradient,
                                    const Conv2DOptions& options) override {
    if (absl::Status s = CheckConv2D("Conv2DFilterGradient", {"images", images},
                                     {"filters_gradient", filters_gradient},
                                     {"out_gradient", out_gradient}, options);
        !s.ok()) {
      return s;
    }
    const ConvShape shape = MakeConvShape(images, filters_gradient, options);
    if constexpr (Device::kHasOwnLoops) {
      return this->WithOwnPatches(
          shape, images.type(), [&]<typename T>(T* patches) {
            this->device_.Conv2DFilterGradient(shape, images.data<T>(),
                                               out_gradient.data<T>(), patches,
                                               filters_gradient.data<T>());
          });
    }
    const char* operation = "Conv2DFilterGradient";
    return kernel_backend::ForType(images.type(), [&]<typename T>(T) {
      // A product of no rows at all: zeros, to which the groups add.
      StridedGemm gemm = {.m = shape.patch(),
                          .n = shape.filters,
                          .a = {.stride = shape.patch(), .transpose = true},
                          .b = {.stride = shape.filters},
                          .out = {.stride = shape.filters}};
      absl::Status zeros = this->device_.Gemm(operation, gemm, images.data<T>(),
                                              out_gradient.data<T>(),
                                              filters_gradient.data<T>());
      if (!zeros.ok()) return zeros;
      gemm.accumulate = true;
      return ForEachGroup(
          shape, images.type(),
          [&](const ConvShape& part, const Tensor& patches, int64_t image,
              int64_t pixel) -> absl::Status {
            if (absl::Status s = this->device_.Grid(
                    operation, part.out_pixels(), part.patch(),
                    kernels::ImagesToPatches<T>{part, images.data<T>() + image,
                                                patches.data<T>()});
                !s.ok()) {
              return s;
            }
            gemm.k = part.out_pixels();
            return this->device_.Gemm(operation, gemm, patches.data<T>(),
                                      out_gradient.data<T>() + pixel,
                                      filters_gradient.data<T>());
          });
    });
  }

  // in [images, height, width, channels], out and argmax (bytes) with height
  // and width halved, rounded up.
  absl::Status MaxPool2x2(const ConstTensor& in, const Tensor& out,
                          const Tensor& argmax) override {
    if (absl::Status s = CheckMaxPool2x2("MaxPool2x2", {"in", in}, {"out", out},
                                         {"argmax", argmax});
        !s.ok()) {
      return s;
    }
    const PoolShape shape = kernel_backend::PoolShapeOf(in, 2);
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      if constexpr (Device::kHasOwnLoops) {
        this->device_.MaxPool2x2(shape, in.data<T>(), out.data<T>(),
                                 argmax.data<uint8_t>());
        return absl::OkStatus();
      } else {
        return this->device_.Grid(
            "MaxPool2x2", shape.out_pixels(), shape.channels,
            kernels::MaxPool<T>{shape, in.data<T>(), out.data<T>(),
                                argmax.data<uint8_t>()});
      }
    });
  }

  // Shapes as in MaxPool2x2().
  absl::Status MaxPool2x2Gradient(const ConstTensor& argmax,
                                  const ConstTensor& out_gradient,
                                  const Tensor& in_gradient) override {
    if (absl::Status s =
            CheckMaxPool2x2("MaxPool2x2Gradient", {"in_gradient", in_gradient},
                            {"out_gradient", out_gradient}, {"argmax", argmax});
        !s.ok()) {
      return s;
    }
    const PoolShape shape = kernel_backend::PoolShapeOf(in_gradient, 2);
    return kernel_backend::ForType(out_gradient.type(), [&]<typename T>(T) {
      if constexpr (Device::kHasOwnLoops) {
        this->device_.MaxPool2x2Gradient(shape, argmax.data<uint8_t>(),
                                         out_gradient.data<T>(),
                                         in_gradient.data<T>());
        return absl::OkStatus();
      } else {
        return this->device_.Grid(
            "MaxPool2x2Gradient", shape.pixels(), shape.channels,
            kernels::MaxPoolGradient<T>{shape, argmax.data<uint8_t>(),
                                        out_gradient.data<T>(),
                                        in_gradient.data<T>()});
      }
    });
  }

  // in [images, height, width, channels], out with height and width divided by
  // `window`, rounded up.
  absl::Status AveragePool(const ConstTensor& in, int64_t window,
                           const Tensor& out) override {
    if (absl::Status s =
            CheckAveragePool("AveragePool", {"in", in}, window, {"out", out});
        !s.ok()) {
      return s;
    }
    const PoolShape shape = kernel_backend::PoolShapeOf(in, window);
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      return this->device_.Grid(
          "AveragePool", shape.out_pixels(), shape.channels,
          kernels::AveragePool<T>{shape, in.data<T>(), out.data<T>()});
    });
  }

  // Shapes as in AveragePool().
  absl::Status AveragePoolGradient(const ConstTensor& out_gradient,
                                   int64_t window,
                                   const Tensor& in_gradient) override {
    if (absl::Status s = CheckAveragePool("AveragePoolGradient",
                                          {"in_gradient", in_gradient}, window,
                                          {"out_gradient", out_gradient});
        !s.ok()) {
      return s;
    }
    const PoolShape shape = kernel_backend::PoolShapeOf(in_gradient, window);
    return kernel_backend::ForType(in_gradient.type(), [&]<typename T>(T) {
      return this->device_.Grid(
          "AveragePoolGradient", shape.pixels(), shape.channels,
          kernels::AveragePoolGradient<T>{shape, out_gradient.data<T>(),
                                          in_gradient.data<T>()});
    });
  }

 protected:
  using KernelElements<Device>::KernelElements;

 private:
  // As many images at a time as their patches fit kMaxPatchElements.
  static constexpr int64_t kMaxPatchElements = int64_t{1} << 26;

  // Calls visit(part, patches, image, pixel) for consecutive groups of images:
  // the shape of the group, memory for its patches, and where the group begins,
  // in elements of the images and of the output.
  template <typename Visit>
  absl::Status ForEachGroup(const ConvShape& shape, ElementType type,
                            Visit visit) {
    const int64_t one = shape.Of(1).out_pixels() * shape.patch();
    const int64_t fitting = one == 0 ? 1 : kMaxPatchElements / one;
    const int64_t group =
        std::clamp<int64_t>(fitting, 1, std::max<int64_t>(shape.images, 1));
    absl::StatusOr<Tensor> patches =
        patches_.Reserve(*this, type, {group * one});
    if (!patches.ok()) return patches.status();
    for (int64_t first = 0; first < shape.images; first += group) {
      const ConvShape part = shape.Of(std::min(group, shape.images - first));
      const absl::Status status =
          visit(part, *patches, shape.Of(first).pixels() * shape.channels,
                shape.Of(first).out_pixels() * shape.filters);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Calls visit(T* patches) with memory for the device's own convolution.
  template <typename Visit>
  absl::Status WithOwnPatches(const ConvShape& shape, ElementType type,
                              Visit visit) {
    absl::StatusOr<Tensor> patches =
        patches_.Reserve(*this, type, {Device::PatchElements(shape)});
    if (!patches.ok()) return patches.status();
    kernel_backend::ForType(
        type, [&]<typename T>(T) { visit(patches->template data<T>()); });
    return absl::OkStatus();
  }

  Scratch patches_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_IMAGES_H_
