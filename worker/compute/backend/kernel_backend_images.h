#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_IMAGES_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_IMAGES_H_

#include <algorithm>

#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/kernels/images.h"

// Convolutions and poolings.
namespace lockstep {

template <typename Device>
template <typename Visit>
absl::Status KernelBackend<Device>::ForEachGroup(const ConvShape& shape,
                                                 ElementType type,
                                                 Visit visit) {
  const int64_t one = shape.Of(1).out_pixels() * shape.patch();
  const int64_t fitting = one == 0 ? 1 : kMaxPatchElements / one;
  const int64_t group =
      std::clamp<int64_t>(fitting, 1, std::max<int64_t>(shape.images, 1));
  absl::StatusOr<Tensor> patches = patches_.Reserve(*this, type, {group * one});
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

template <typename Device>
absl::Status KernelBackend<Device>::DoConv2D(const ConstTensor& images,
                                             const ConstTensor& filters,
                                             const Tensor& out,
                                             const Conv2DOptions& options) {
  const ConvShape shape = MakeConvShape(images, filters, options);
  return kernel_backend::ForType(out.type(), [&]<typename T>(T) {
    return ForEachGroup(
        shape, out.type(),
        [&](const ConvShape& part, const Tensor& patches, int64_t image,
            int64_t pixel) -> absl::Status {
          if (absl::Status s = device_.Grid(
                  "Conv2D", part.out_pixels(), part.patch(),
                  kernels::ImagesToPatches<T>{part, images.data<T>() + image,
                                              patches.data<T>()});
              !s.ok()) {
            return s;
          }
          return device_.Gemm("Conv2D",
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

template <typename Device>
absl::Status KernelBackend<Device>::DoConv2DInputGradient(
    const ConstTensor& filters, const ConstTensor& out_gradient,
    const Tensor& images_gradient, const Conv2DOptions& options) {
  const ConvShape shape = MakeConvShape(images_gradient, filters, options);
  return kernel_backend::ForType(filters.type(), [&]<typename T>(T) {
    return ForEachGroup(
        shape, filters.type(),
        [&](const ConvShape& part, const Tensor& patches, int64_t image,
            int64_t pixel) -> absl::Status {
          if (absl::Status s = device_.Gemm(
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
          return device_.Grid(
              "Conv2DInputGradient", part.pixels(), part.channels,
              kernels::PatchesToImages<T>{part, patches.data<T>(),
                                          images_gradient.data<T>() + image});
        });
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoConv2DFilterGradient(
    const ConstTensor& images, const ConstTensor& out_gradient,
    const Tensor& filters_gradient, const Conv2DOptions& options) {
  const ConvShape shape = MakeConvShape(images, filters_gradient, options);
  const char* operation = "Conv2DFilterGradient";
  return kernel_backend::ForType(images.type(), [&]<typename T>(T) {
    // A product of no rows at all: zeros, to which the groups add.
    StridedGemm gemm = {.m = shape.patch(),
                        .n = shape.filters,
                        .a = {.stride = shape.patch(), .transpose = true},
                        .b = {.stride = shape.filters},
                        .out = {.stride = shape.filters}};
    absl::Status zeros =
        device_.Gemm(operation, gemm, images.data<T>(), out_gradient.data<T>(),
                     filters_gradient.data<T>());
    if (!zeros.ok()) return zeros;
    gemm.accumulate = true;
    return ForEachGroup(
        shape, images.type(),
        [&](const ConvShape& part, const Tensor& patches, int64_t image,
            int64_t pixel) -> absl::Status {
          if (absl::Status s = device_.Grid(
                  operation, part.out_pixels(), part.patch(),
                  kernels::ImagesToPatches<T>{part, images.data<T>() + image,
                                              patches.data<T>()});
              !s.ok()) {
            return s;
          }
          gemm.k = part.out_pixels();
          return device_.Gemm(operation, gemm, patches.data<T>(),
                              out_gradient.data<T>() + pixel,
                              filters_gradient.data<T>());
        });
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoMaxPool2x2(const ConstTensor& in,
                                                 const Tensor& out,
                                                 const Tensor& argmax) {
  const PoolShape shape = kernel_backend::PoolShapeOf(in, 2);
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return device_.Grid("MaxPool2x2", shape.out_pixels(), shape.channels,
                        kernels::MaxPool<T>{shape, in.data<T>(), out.data<T>(),
                                            argmax.data<uint8_t>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoMaxPool2x2Gradient(
    const ConstTensor& argmax, const ConstTensor& out_gradient,
    const Tensor& in_gradient) {
  const PoolShape shape = kernel_backend::PoolShapeOf(in_gradient, 2);
  return kernel_backend::ForType(out_gradient.type(), [&]<typename T>(T) {
    return device_.Grid("MaxPool2x2Gradient", shape.pixels(), shape.channels,
                        kernels::MaxPoolGradient<T>{
                            shape, argmax.data<uint8_t>(),
                            out_gradient.data<T>(), in_gradient.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoAveragePool(const ConstTensor& in,
                                                  int64_t window,
                                                  const Tensor& out) {
  const PoolShape shape = kernel_backend::PoolShapeOf(in, window);
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return device_.Grid(
        "AveragePool", shape.out_pixels(), shape.channels,
        kernels::AveragePool<T>{shape, in.data<T>(), out.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoAveragePoolGradient(
    const ConstTensor& out_gradient, int64_t window,
    const Tensor& in_gradient) {
  const PoolShape shape = kernel_backend::PoolShapeOf(in_gradient, window);
  return kernel_backend::ForType(in_gradient.type(), [&]<typename T>(T) {
    return device_.Grid(
        "AveragePoolGradient", shape.pixels(), shape.channels,
        kernels::AveragePoolGradient<T>{shape, out_gradient.data<T>(),
                                        in_gradient.data<T>()});
  });
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_IMAGES_H_
