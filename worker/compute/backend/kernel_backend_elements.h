#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ELEMENTS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ELEMENTS_H_

#include <cmath>

#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/kernels/columns.h"
#include "worker/compute/kernels/elementwise.h"

// Products, and operations element by element.
namespace lockstep {

template <typename Device>
absl::Status KernelBackend<Device>::DoMatMul(const ConstTensor& a,
                                             const ConstTensor& b,
                                             const MatMulOptions& options,
                                             const Tensor& out) {
  StridedGemm gemm;
  gemm.m = out.dim(0);
  gemm.n = out.dim(1);
  gemm.k = a.dim(options.transpose_a ? 0 : 1);
  gemm.a = {.stride = a.dim(1), .transpose = options.transpose_a};
  gemm.b = {.stride = b.dim(1), .transpose = options.transpose_b};
  gemm.out = {.stride = gemm.n};
  gemm.accumulate = options.accumulate;
  return kernel_backend::ForType(out.type(), [&]<typename T>(T) {
    return device_.Gemm("MatMul", gemm, a.data<T>(), b.data<T>(),
                        out.data<T>());
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoAddBias(const ConstTensor& bias,
                                              const Tensor& values) {
  return kernel_backend::ForType(values.type(), [&]<typename T>(T) {
    const int64_t n = bias.dim(0);
    return device_.Grid(
        "AddBias", kernel_backend::RowsOf(values), n,
        kernels::AddBias<T>{bias.data<T>(), n, values.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoBiasGradient(
    const ConstTensor& out_gradient, const Tensor& bias_gradient) {
  return kernel_backend::ForType(bias_gradient.type(), [&]<typename T>(T) {
    const int64_t n = bias_gradient.dim(0);
    return device_.SumColumns(
        "BiasGradient", kernel_backend::RowsOf(out_gradient), n,
        kernels::Element<T>{out_gradient.data<T>(), n, T{1}},
        bias_gradient.data<T>());
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoRelu(const ConstTensor& in,
                                           const Tensor& out) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return device_.ForEach("Relu", in.size(),
                           kernels::Relu<T>{in.data<T>(), out.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoReluGradient(
    const ConstTensor& out, const ConstTensor& out_gradient,
    const Tensor& in_gradient) {
  return kernel_backend::ForType(out.type(), [&]<typename T>(T) {
    return device_.ForEach(
        "ReluGradient", out.size(),
        kernels::ReluGradient<T>{out.data<T>(), out_gradient.data<T>(),
                                 in_gradient.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoActivate(Activation kind,
                                               const ConstTensor& in,
                                               const Tensor& out) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return kernel_backend::ForKind(kind, [&](auto constant) {
      return device_.ForEach("Activate", in.size(),
                             kernels::Activate<T, decltype(constant)::value>{
                                 in.data<T>(), out.data<T>()});
    });
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoActivateGradient(
    Activation kind, const ConstTensor& in, const ConstTensor& out_gradient,
    const Tensor& in_gradient) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return kernel_backend::ForKind(kind, [&](auto constant) {
      return device_.ForEach(
          "ActivateGradient", in.size(),
          kernels::ActivateGradient<T, decltype(constant)::value>{
              in.data<T>(), out_gradient.data<T>(), in_gradient.data<T>()});
    });
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoCombine(const ConstTensor& in, double a,
                                              double b, const Tensor& out) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return device_.ForEach(
        "Combine", in.size(),
        kernels::Combine<T>{in.data<T>(), static_cast<T>(a), static_cast<T>(b),
                            out.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoDropout(const ConstTensor& in,
                                              const DropoutOptions& options,
                                              const Tensor& out) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    const auto threshold =
        static_cast<uint32_t>(std::floor(options.rate * 4294967296.0));
    return device_.ForEach(
        "Dropout", in.size(),
        kernels::Dropout<T>{in.data<T>(), options.key, threshold,
                            static_cast<T>(1 / (1 - options.rate)),
                            out.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoEmbed(const ConstTensor& table,
                                            const ConstTensor& ids,
                                            const Tensor& out) {
  return kernel_backend::ForType(table.type(), [&]<typename T>(T) {
    const int64_t n = table.dim(1);
    return device_.Grid("Embed", out.dim(0), n,
                        kernels::Embed<T>{table.data<T>(), ids.data<int32_t>(),
                                          n, out.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoEmbedGradient(
    const ConstTensor& ids, const ConstTensor& out_gradient,
    const Tensor& table_gradient) {
  return kernel_backend::ForType(table_gradient.type(), [&]<typename T>(T) {
    const int64_t n = table_gradient.dim(1);
    return device_.Grid("EmbedGradient", table_gradient.dim(0), n,
                        kernels::EmbedGradient<T>{
                            ids.data<int32_t>(), ids.size(), n,
                            out_gradient.data<T>(), table_gradient.data<T>()});
  });
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ELEMENTS_H_
