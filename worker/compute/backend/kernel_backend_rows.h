#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ROWS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ROWS_H_

#include <algorithm>

#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/kernels/columns.h"
#include "worker/compute/kernels/rows.h"

// Normalisation, losses and counts.
namespace lockstep {

template <typename Device>
absl::Status KernelBackend<Device>::DoLayerNorm(
    const ConstTensor& in, const ConstTensor& scale, const ConstTensor& shift,
    double epsilon, const Tensor& out, const Tensor& statistics) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    return device_.Rows(
        "LayerNorm", in.dim(0),
        kernels::LayerNorm<T>{in.dim(1), static_cast<T>(epsilon), in.data<T>(),
                              scale.data<T>(), shift.data<T>(), out.data<T>(),
                              statistics.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoLayerNormGradient(
    const ConstTensor& in, const ConstTensor& scale,
    const ConstTensor& statistics, const ConstTensor& out_gradient,
    const Tensor& in_gradient, const Tensor& scale_gradient,
    const Tensor& shift_gradient) {
  const char* operation = "LayerNormGradient";
  const int64_t rows = in.dim(0);
  const int64_t n = in.dim(1);
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) -> absl::Status {
    const T* gradient = out_gradient.data<T>();
    if (absl::Status s = device_.SumColumns(
            operation, rows, n,
            kernels::LayerNormScale<T>{in.data<T>(), statistics.data<T>(),
                                       gradient, n},
            scale_gradient.data<T>());
        !s.ok()) {
      return s;
    }
    if (absl::Status s = device_.SumColumns(
            operation, rows, n, kernels::Element<T>{gradient, n, T{1}},
            shift_gradient.data<T>());
        !s.ok()) {
      return s;
    }
    return device_.Rows(
        operation, rows,
        kernels::LayerNormGradient<T>{n, in.data<T>(), scale.data<T>(),
                                      statistics.data<T>(), gradient,
                                      in_gradient.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoBatchStatistics(
    const ConstTensor& in, const Tensor& statistics) {
  const char* operation = "BatchStatistics";
  const int64_t rows = in.dim(0);
  const int64_t n = in.dim(1);
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) -> absl::Status {
    const T factor = T{1} / static_cast<T>(std::max<int64_t>(rows, 1));
    T* mean = statistics.data<T>();
    if (absl::Status s = device_.SumColumns(
            operation, rows, n, kernels::Element<T>{in.data<T>(), n, factor},
            mean);
        !s.ok()) {
      return s;
    }
    return device_.SumColumns(
        operation, rows, n,
        kernels::SquaredDistance<T>{in.data<T>(), mean, n, factor}, mean + n);
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoBatchNorm(const ConstTensor& in,
                                                const ConstTensor& statistics,
                                                const ConstTensor& scale,
                                                const ConstTensor& shift,
                                                double epsilon,
                                                const Tensor& out) {
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
    const int64_t n = in.dim(1);
    return device_.Grid("BatchNorm", in.dim(0), n,
                        kernels::BatchNorm<T>{
                            in.data<T>(),
                            {statistics.data<T>(), n, static_cast<T>(epsilon)},
                            scale.data<T>(),
                            shift.data<T>(),
                            out.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::DoBatchNormGradient(
    const ConstTensor& in, const ConstTensor& statistics,
    const ConstTensor& scale, double epsilon, const ConstTensor& out_gradient,
    const Tensor& in_gradient, const Tensor& scale_gradient,
    const Tensor& shift_gradient) {
  const char* operation = "BatchNormGradient";
  const int64_t rows = in.dim(0);
  const int64_t n = in.dim(1);
  return kernel_backend::ForType(in.type(), [&]<typename T>(T) -> absl::Status {
    const kernels::Moments<T> moments{statistics.data<T>(), n,
                                      static_cast<T>(epsilon)};
    const T* gradient = out_gradient.data<T>();
    if (absl::Status s = device_.SumColumns(
            operation, rows, n,
            kernels::BatchNormScale<T>{in.data<T>(), moments, gradient},
            scale_gradient.data<T>());
        !s.ok()) {
      return s;
    }
    if (absl::Status s = device_.SumColumns(
            operation, rows, n, kernels::Element<T>{gradient, n, T{1}},
            shift_gradient.data<T>());
        !s.ok()) {
      return s;
    }
    const T factor = T{1} / static_cast<T>(std::max<int64_t>(rows, 1));
    return device_.Grid(operation, rows, n,
                        kernels::BatchNormGradient<T>{
                            in.data<T>(), moments, scale.data<T>(), gradient,
                            scale_gradient.data<T>(), shift_gradient.data<T>(),
                            factor, in_gradient.data<T>()});
  });
}

template <typename Device>
absl::Status KernelBackend<Device>::Total(const char* operation,
                                          const Tensor& values, double divisor,
                                          const Tensor& out) {
  return device_.Rows(operation, 1,
                      kernels::Total{values.size(), values.data<double>(),
                                     divisor, out.data<double>()});
}

template <typename Device>
absl::Status KernelBackend<Device>::DoCountNonFinite(const ConstTensor& values,
                                                     const Tensor& count) {
  constexpr int64_t kRow = 1 << 14;
  const char* operation = "CountNonFinite";
  const int64_t size = values.size();
  const int64_t rows = (size + kRow - 1) / kRow;
  absl::StatusOr<Tensor> counts =
      rows_.Reserve(*this, ElementType::kFloat64, {rows});
  if (!counts.ok()) return counts.status();
  if (absl::Status s = kernel_backend::ForType(
          values.type(),
          [&]<typename T>(T) {
            return device_.Rows(
                operation, rows,
                kernels::CountNonFinite<T>{size, kRow, values.data<T>(),
                                           counts->data<double>()});
          });
      !s.ok()) {
    return s;
  }
  return Total(operation, *counts, 1, count);
}

template <typename Device>
absl::Status KernelBackend<Device>::DoSoftmaxCrossEntropy(
    const ConstTensor& logits, const ConstTensor& labels, const Tensor& loss,
    const Tensor& logits_gradient) {
  const char* operation = "SoftmaxCrossEntropy";
  const int64_t rows = logits.dim(0);
  const auto any = static_cast<double>(std::max<int64_t>(rows, 1));
  absl::StatusOr<Tensor> losses =
      rows_.Reserve(*this, ElementType::kFloat64, {rows});
  if (!losses.ok()) return losses.status();
  if (absl::Status s = kernel_backend::ForType(
          logits.type(),
          [&]<typename T>(T) {
            return device_.Rows(
                operation, rows,
                kernels::SoftmaxCrossEntropy<T>{
                    logits.dim(1), logits.data<T>(), labels.data<int32_t>(),
                    T{1} / static_cast<T>(any), logits_gradient.data<T>(),
                    losses->data<double>()});
          });
      !s.ok()) {
    return s;
  }
  return Total(operation, *losses, any, loss);
}

template <typename Device>
absl::Status KernelBackend<Device>::DoCountCorrect(const ConstTensor& logits,
                                                   const ConstTensor& labels,
                                                   const Tensor& count) {
  const char* operation = "CountCorrect";
  const int64_t rows = logits.dim(0);
  absl::StatusOr<Tensor> correct =
      rows_.Reserve(*this, ElementType::kFloat64, {rows});
  if (!correct.ok()) return correct.status();
  if (absl::Status s = kernel_backend::ForType(
          logits.type(),
          [&]<typename T>(T) {
            return device_.Rows(
                operation, rows,
                kernels::IsCorrect<T>{logits.dim(1), logits.data<T>(),
                                      labels.data<int32_t>(),
                                      correct->data<double>()});
          });
      !s.ok()) {
    return s;
  }
  return Total(operation, *correct, 1, count);
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ROWS_H_
