#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ELEMENTS_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ELEMENTS_H_

#include <cmath>
#include <cstdint>

#include "worker/compute/backend/kernel_backend_memory.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/kernels/columns.h"
#include "worker/compute/kernels/elementwise.h"
#include "worker/compute/kernels/strided_gemm.h"

namespace lockstep::worker {

// KernelElements has the products of KernelBackend and its operations on each
// element, row or column by itself.
//
// Threads: as ComputeBackend.
template <typename Device>
class KernelElements : public KernelMemory<Device> {
 public:
  // out [m, n] from a [m, k] and b [k, n], or their transposes as they are
  // stored. One Gemm; rows of all three are dense.
  absl::Status MatMul(const ConstTensor& a, const ConstTensor& b,
                      const MatMulOptions& options,
                      const Tensor& out) override {
    if (absl::Status s = CheckMatMul(a, b, options, out); !s.ok()) return s;
    StridedGemm gemm;
    gemm.m = out.dim(0);
    gemm.n = out.dim(1);
    gemm.k = a.dim(options.transpose_a ? 0 : 1);
    gemm.a = {.stride = a.dim(1), .transpose = options.transpose_a};
    gemm.b = {.stride = b.dim(1), .transpose = options.transpose_b};
    gemm.out = {.stride = gemm.n};
    gemm.accumulate = options.accumulate;
    return kernel_backend::ForType(out.type(), [&]<typename T>(T) {
      return this->device_.Gemm("MatMul", gemm, a.data<T>(), b.data<T>(),
                                out.data<T>());
    });
  }

  // values [..., n] as a matrix of rows, bias [n]: an element at a time, in
  // place.
  absl::Status AddBias(const ConstTensor& bias, const Tensor& values) override {
    if (absl::Status s =
            CheckBias("AddBias", {"values", values}, {"bias", bias});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(values.type(), [&]<typename T>(T) {
      const int64_t n = bias.dim(0);
      return this->device_.Grid(
          "AddBias", kernel_backend::RowsOf(values), n,
          kernels::AddBias<T>{bias.data<T>(), n, values.data<T>()});
    });
  }

  // bias_gradient [n] from out_gradient [..., n]: the sums of its columns.
  absl::Status BiasGradient(const ConstTensor& out_gradient,
                            const Tensor& bias_gradient) override {
    if (absl::Status s =
            CheckBias("BiasGradient", {"out_gradient", out_gradient},
                      {"bias_gradient", bias_gradient});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(bias_gradient.type(), [&]<typename T>(T) {
      const int64_t n = bias_gradient.dim(0);
      return this->device_.SumColumns(
          "BiasGradient", kernel_backend::RowsOf(out_gradient), n,
          kernels::Element<T>{out_gradient.data<T>(), n, T{1}},
          bias_gradient.data<T>());
    });
  }

  // in and out of any one shape; out may be in.
  absl::Status Relu(const ConstTensor& in, const Tensor& out) override {
    if (absl::Status s = CheckSame("Relu", {"in", in}, {{"out", out}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      return this->device_.ForEach(
          "Relu", in.size(), kernels::Relu<T>{in.data<T>(), out.data<T>()});
    });
  }

  // All tensors have one shape. Computed from `out`, so that `in` need not be
  // kept.
  absl::Status ReluGradient(const ConstTensor& out,
                            const ConstTensor& out_gradient,
                            const Tensor& in_gradient) override {
    if (absl::Status s = CheckSame(
            "ReluGradient", {"out", out},
            {{"out_gradient", out_gradient}, {"in_gradient", in_gradient}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(out.type(), [&]<typename T>(T) {
      return this->device_.ForEach(
          "ReluGradient", out.size(),
          kernels::ReluGradient<T>{out.data<T>(), out_gradient.data<T>(),
                                   in_gradient.data<T>()});
    });
  }

  // in and out of any one shape; out may be in.
  absl::Status Activate(Activation kind, const ConstTensor& in,
                        const Tensor& out) override {
    if (absl::Status s = CheckSame("Activate", {"in", in}, {{"out", out}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      return kernel_backend::ForKind(kind, [&](auto constant) {
        return this->device_.ForEach(
            "Activate", in.size(),
            kernels::Activate<T, decltype(constant)::value>{in.data<T>(),
                                                            out.data<T>()});
      });
    });
  }

  // All tensors have one shape. Computed from `in`, since not each of these
  // functions can be inverted.
  absl::Status ActivateGradient(Activation kind, const ConstTensor& in,
                                const ConstTensor& out_gradient,
                                const Tensor& in_gradient) override {
    if (absl::Status s = CheckSame(
            "ActivateGradient", {"in", in},
            {{"out_gradient", out_gradient}, {"in_gradient", in_gradient}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      return kernel_backend::ForKind(kind, [&](auto constant) {
        return this->device_.ForEach(
            "ActivateGradient", in.size(),
            kernels::ActivateGradient<T, decltype(constant)::value>{
                in.data<T>(), out_gradient.data<T>(), in_gradient.data<T>()});
      });
    });
  }

  // in and out of any one shape.
  absl::Status Combine(const ConstTensor& in, double a, double b,
                       const Tensor& out) override {
    if (absl::Status s = CheckSame("Combine", {"in", in}, {{"out", out}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      return this->device_.ForEach(
          "Combine", in.size(),
          kernels::Combine<T>{in.data<T>(), static_cast<T>(a),
                              static_cast<T>(b), out.data<T>()});
    });
  }

  // in and out of any one shape. The gradient is the same operation with the
  // same key.
  absl::Status Dropout(const ConstTensor& in, const DropoutOptions& options,
                       const Tensor& out) override {
    if (absl::Status s = CheckDropout(options); !s.ok()) return s;
    if (absl::Status s = CheckSame("Dropout", {"in", in}, {{"out", out}});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(in.type(), [&]<typename T>(T) {
      const auto threshold =
          static_cast<uint32_t>(std::floor(options.rate * 4294967296.0));
      return this->device_.ForEach(
          "Dropout", in.size(),
          kernels::Dropout<T>{in.data<T>(), options.key, threshold,
                              static_cast<T>(1 / (1 - options.rate)),
                              out.data<T>()});
    });
  }

  // out [count, n] from table [rows, n] and ids [count].
  absl::Status Embed(const ConstTensor& table, const ConstTensor& ids,
                     const Tensor& out) override {
    if (absl::Status s =
            CheckEmbed("Embed", {"table", table}, ids, {"out", out});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(table.type(), [&]<typename T>(T) {
      const int64_t n = table.dim(1);
      return this->device_.Grid(
          "Embed", out.dim(0), n,
          kernels::Embed<T>{table.data<T>(), ids.data<int32_t>(), n,
                            out.data<T>()});
    });
  }

  // table_gradient [rows, n] from out_gradient [count, n] and ids [count]; rows
  // that no id names become 0.
  absl::Status EmbedGradient(const ConstTensor& ids,
                             const ConstTensor& out_gradient,
                             const Tensor& table_gradient) override {
    if (absl::Status s =
            CheckEmbed("EmbedGradient", {"table_gradient", table_gradient}, ids,
                       {"out_gradient", out_gradient});
        !s.ok()) {
      return s;
    }
    return kernel_backend::ForType(table_gradient.type(), [&]<typename T>(T) {
      const int64_t n = table_gradient.dim(1);
      if constexpr (Device::kHasOwnLoops) {
        this->device_.EmbedGradient(
            ids.data<int32_t>(), ids.size(), n, out_gradient.data<T>(),
            table_gradient.size(), table_gradient.data<T>());
        return absl::OkStatus();
      } else {
        return this->device_.Grid(
            "EmbedGradient", table_gradient.dim(0), n,
            kernels::EmbedGradient<T>{ids.data<int32_t>(), ids.size(), n,
                                      out_gradient.data<T>(),
                                      table_gradient.data<T>()});
      }
    });
  }

 protected:
  using KernelMemory<Device>::KernelMemory;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ELEMENTS_H_
