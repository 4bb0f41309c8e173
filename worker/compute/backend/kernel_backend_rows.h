#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ROWS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "worker/compute/backend/kernel_backend_images.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/kernels/columns.h"
#include "worker/compute/kernels/rows.h"

namespace lockstep::worker {

// KernelRows has the normalisations, losses and counts of KernelBackend.
//
// Threads: as ComputeBackend.
template <typename Device>
class KernelRows : public KernelImages<Device> {
 public:
  // in and out [rows, n], scale and shift [n], statistics [rows, 2]. One group
  // for each row: it needs the mean before the variance before the result.
  absl::Status LayerNorm(const ConstTensor& in, const ConstTensor& scale,
                         const ConstTensor& shift, double epsilon,
                         const Tensor& out, const Tensor& statistics) override {
    if (absl::Status s = CheckPositive("LayerNorm", "epsilon", epsilon);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckNorm("LayerNorm", {"in", in}, /*by_row=*/true,
                                   {"statistics", statistics},
                                   {{"scale", scale}, {"shift", shift}});
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckSame("LayerNorm", {"in", in}, {{"out", out}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      return this->device_.Rows(
          "LayerNorm", in.dim(0),
          kernels::LayerNorm<T>{in.dim(1), static_cast<T>(epsilon),
                                in.data<T>(), scale.data<T>(), shift.data<T>(),
                                out.data<T>(), statistics.data<T>()});
    });
  }

  // in, out_gradient and in_gradient [rows, n], statistics [rows, 2], the
  // others [n]. The gradients of scale and shift are sums of columns, that of
  // the input is computed row by row.
  absl::Status LayerNormGradient(const ConstTensor& in,
                                 const ConstTensor& scale,
                                 const ConstTensor& statistics,
                                 const ConstTensor& out_gradient,
                                 const Tensor& in_gradient,
                                 const Tensor& scale_gradient,
                                 const Tensor& shift_gradient) override {
    const char* operation = "LayerNormGradient";
    if (absl::Status s = CheckNorm(operation, {"in", in}, /*by_row=*/true,
                                   {"statistics", statistics},
                                   {{"scale", scale},
                                    {"scale_gradient", scale_gradient},
                                    {"shift_gradient", shift_gradient}});
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckSame(
            operation, {"in", in},
            {{"out_gradient", out_gradient}, {"in_gradient", in_gradient}});
        !s.ok()) {
      return s;
    }
    const int64_t rows = in.dim(0);
    const int64_t n = in.dim(1);
    return kernel_backend::ForType(
        in.type(), [&]<typename T>(T) -> absl::Status {
          const T* gradient = out_gradient.data<T>();
          if (absl::Status s = this->device_.SumColumns(
                  operation, rows, n,
                  kernels::LayerNormScale<T>{in.data<T>(), statistics.data<T>(),
                                             gradient, n},
                  scale_gradient.data<T>());
              !s.ok()) {
            return s;
          }
          if (absl::Status s = this->device_.SumColumns(
                  operation, rows, n, kernels::Element<T>{gradient, n, T{1}},
                  shift_gradient.data<T>());
              !s.ok()) {
            return s;
          }
          return this->device_.Rows(
              operation, rows,
              kernels::LayerNormGradient<T>{n, in.data<T>(), scale.data<T>(),
                                            statistics.data<T>(), gradient,
                                            in_gradient.data<T>()});
        });
  }

  // statistics [2, n] of in [rows, n]: means, then variances around them, in
  // two passes over the input. A batch without rows has zeros.
  absl::Status BatchStatistics(const ConstTensor& in,
                               const Tensor& statistics) override {
    const char* operation = "BatchStatistics";
    if (absl::Status s = CheckNorm(operation, {"in", in}, /*by_row=*/false,
                                   {"statistics", statistics}, {});
        !s.ok()) {
      return s;
    }
    const int64_t rows = in.dim(0);
    const int64_t n = in.dim(1);
    return kernel_backend::ForType(
        in.type(), [&]<typename T>(T) -> absl::Status {
          const T factor = T{1} / static_cast<T>(std::max<int64_t>(rows, 1));
          T* mean = statistics.data<T>();
          if (absl::Status s = this->device_.SumColumns(
                  operation, rows, n,
                  kernels::Element<T>{in.data<T>(), n, factor}, mean);
              !s.ok()) {
            return s;
          }
          return this->device_.SumColumns(
              operation, rows, n,
              kernels::SquaredDistance<T>{in.data<T>(), mean, n, factor},
              mean + n);
        });
  }

  // in and out [rows, n], statistics [2, n], scale and shift [n].
  absl::Status BatchNorm(const ConstTensor& in, const ConstTensor& statistics,
                         const ConstTensor& scale, const ConstTensor& shift,
                         double epsilon, const Tensor& out) override {
    if (absl::Status s = CheckPositive("BatchNorm", "epsilon", epsilon);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckNorm("BatchNorm", {"in", in}, /*by_row=*/false,
                                   {"statistics", statistics},
                                   {{"scale", scale}, {"shift", shift}});
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckSame("BatchNorm", {"in", in}, {{"out", out}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      const int64_t n = in.dim(1);
      return this->device_.Grid("BatchNorm", in.dim(0), n,
                                kernels::BatchNorm<T>{in.data<T>(),
                                                      {statistics.data<T>(), n,
                                                       static_cast<T>(epsilon)},
                                                      scale.data<T>(),
                                                      shift.data<T>(),
                                                      out.data<T>()});
    });
  }

  // in, out_gradient and in_gradient [rows, n], statistics [2, n], the others
  // [n]. The sums of scale and shift come first: the gradient of the input
  // contains them.
  absl::Status BatchNormGradient(const ConstTensor& in,
                                 const ConstTensor& statistics,
                                 const ConstTensor& scale, double epsilon,
                                 const ConstTensor& out_gradient,
                                 const Tensor& in_gradient,
                                 const Tensor& scale_gradient,
                                 const Tensor& shift_gradient) override {
    const char* operation = "BatchNormGradient";
    if (absl::Status s = CheckPositive(operation, "epsilon", epsilon);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckNorm(operation, {"in", in}, /*by_row=*/false,
                                   {"statistics", statistics},
                                   {{"scale", scale},
                                    {"scale_gradient", scale_gradient},
                                    {"shift_gradient", shift_gradient}});
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckSame(
            operation, {"in", in},
            {{"out_gradient", out_gradient}, {"in_gradient", in_gradient}});
        !s.ok()) {
      return s;
    }
    const int64_t rows = in.dim(0);
    const int64_t n = in.dim(1);
    return kernel_backend::ForType(
        in.type(), [&]<typename T>(T) -> absl::Status {
          const kernels::Moments<T> moments{statistics.data<T>(), n,
                                            static_cast<T>(epsilon)};
          const T* gradient = out_gradient.data<T>();
          if (absl::Status s = this->device_.SumColumns(
                  operation, rows, n,
                  kernels::BatchNormScale<T>{in.data<T>(), moments, gradient},
                  scale_gradient.data<T>());
              !s.ok()) {
            return s;
          }
          if (absl::Status s = this->device_.SumColumns(
                  operation, rows, n, kernels::Element<T>{gradient, n, T{1}},
                  shift_gradient.data<T>());
              !s.ok()) {
            return s;
          }
          const T factor = T{1} / static_cast<T>(std::max<int64_t>(rows, 1));
          return this->device_.Grid(
              operation, rows, n,
              kernels::BatchNormGradient<T>{
                  in.data<T>(), moments, scale.data<T>(), gradient,
                  scale_gradient.data<T>(), shift_gradient.data<T>(), factor,
                  in_gradient.data<T>()});
        });
  }

  // count [1] in float64, of values of any shape. Counted in rows of kRow
  // elements, so that groups work side by side, and then added.
  absl::Status CountNonFinite(const ConstTensor& values,
                              const Tensor& count) override {
    constexpr int64_t kRow = 1 << 12;
    const char* operation = "CountNonFinite";
    if (absl::Status s =
            CheckFloats(operation, {"values", values}, values.rank());
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckNumber(operation, {"count", count}); !s.ok()) {
      return s;
    }
    const int64_t size = values.size();
    const int64_t rows = (size + kRow - 1) / kRow;
    absl::StatusOr<Tensor> counts =
        rows_.Reserve(*this, ElementType::kFloat64, {rows});
    if (!counts.ok()) return counts.status();
    if (absl::Status s = kernel_backend::ForType(
            values.type(),
            [&]<typename T>(T) {
              return this->device_.Rows(
                  operation, rows,
                  kernels::CountNonFinite<T>{size, kRow, values.data<T>(),
                                             counts->data<double>()});
            });
        !s.ok()) {
      return s;
    }
    return Total(operation, *counts, 1, count);
  }

  // logits and logits_gradient [rows, classes], labels [rows], loss [1] in
  // float64, which is the mean over rows. Losses are added in float64 also
  // where logits are float.
  absl::Status SoftmaxCrossEntropy(const ConstTensor& logits,
                                   const ConstTensor& labels,
                                   const Tensor& loss,
                                   const Tensor& logits_gradient) override {
    const char* operation = "SoftmaxCrossEntropy";
    if (absl::Status s = CheckLabels(operation, logits, labels); !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckNumber(operation, {"loss", loss}); !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckSame(operation, {"logits", logits},
                                   {{"logits_gradient", logits_gradient}});
        !s.ok()) {
      return s;
    }
    const int64_t rows = logits.dim(0);
    const auto any = static_cast<double>(std::max<int64_t>(rows, 1));
    absl::StatusOr<Tensor> losses =
        rows_.Reserve(*this, ElementType::kFloat64, {rows});
    if (!losses.ok()) return losses.status();
    if (absl::Status s = kernel_backend::ForType(
            logits.type(),
            [&]<typename T>(T) {
              return this->device_.Rows(
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

  // logits [rows, classes], labels [rows], count [1] in float64.
  absl::Status CountCorrect(const ConstTensor& logits,
                            const ConstTensor& labels,
                            const Tensor& count) override {
    const char* operation = "CountCorrect";
    if (absl::Status s = CheckLabels(operation, logits, labels); !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckNumber(operation, {"count", count}); !s.ok()) {
      return s;
    }
    const int64_t rows = logits.dim(0);
    absl::StatusOr<Tensor> correct =
        rows_.Reserve(*this, ElementType::kFloat64, {rows});
    if (!correct.ok()) return correct.status();
    if (absl::Status s = kernel_backend::ForType(
            logits.type(),
            [&]<typename T>(T) {
              return this->device_.Rows(
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

 protected:
  using KernelImages<Device>::KernelImages;

 private:
  // Writes the sum of float64 `values`, divided by `divisor`, to `out`.
  absl::Status Total(const char* operation, const Tensor& values,
                     double divisor, const Tensor& out) {
    return this->device_.Rows(
        operation, 1,
        kernels::Total{values.size(), values.data<double>(), divisor,
                       out.data<double>()});
  }

  Scratch rows_;  // a float64 for each row
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ROWS_H_
