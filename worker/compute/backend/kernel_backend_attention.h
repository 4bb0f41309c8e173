#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ATTENTION_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ATTENTION_H_

#include <cstdint>

#include "worker/compute/backend/attention_shape.h"
#include "worker/compute/backend/kernel_backend_rows.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/kernels/rows.h"

namespace lockstep::worker {

// KernelAttention is the attention of KernelBackend. A device with
// kHasFusedAttention computes heads that it takes (FusesAttention()) in kernels
// of its own, and keeps no scores; all others have them as products of
// matrices.
//
// Threads: as ComputeBackend.
template <typename Device>
class KernelAttention : public KernelRows<Device> {
 public:
  // qkv [sequences, length, 3 width], out [sequences, length, width],
  // probabilities [sequences, heads, length, length]. Queries, keys and values
  // lie side by side in qkv, those of a head in a row of width / heads; nothing
  // is copied apart: S = Q K^T scale, P = softmax(S), O = P V.
  absl::Status CausalAttention(const ConstTensor& qkv, int64_t heads,
                               const Tensor& out, const Tensor& kept) override {
    const char* operation = "CausalAttention";
    if (absl::Status s = Check(operation, qkv, heads, {"out", out}, kept);
        !s.ok()) {
      return s;
    }
    if (qkv.size() == 0) return absl::OkStatus();
    const kernel_backend::AttentionShape shape(qkv, heads);
    if constexpr (Device::kHasFusedAttention) {
      if (this->device_.FusesAttention(qkv.type(), shape.head())) {
        return this->device_.Attention(operation, shape, qkv.data<float>(),
                                       out.data<float>(), kept.data<float>());
      }
    }
    return kernel_backend::ForType(qkv.type(), [&]<typename T>(T) {
      return Forward(operation, shape, qkv.data<T>(), out.data<T>(),
                     kept.data<T>());
    });
  }

  // As CausalAttention(); out_gradient as `out`, qkv_gradient as `qkv`. The
  // gradient of the scores needs memory of the shape of `probabilities`, which
  // stays as it is for a second call.
  absl::Status CausalAttentionGradient(const ConstTensor& qkv, int64_t heads,
                                       const ConstTensor& out,
                                       const ConstTensor& kept,
                                       const ConstTensor& out_gradient,
                                       const Tensor& qkv_gradient) override {
    const char* operation = "CausalAttentionGradient";
    for (const absl::Status& s :
         {Check(operation, qkv, heads, {"out", out}, kept),
          CheckSame(operation, {"out", out}, {{"out_gradient", out_gradient}}),
          CheckSame(operation, {"qkv", qkv},
                    {{"qkv_gradient", qkv_gradient}})}) {
      if (!s.ok()) return s;
    }
    if (qkv.size() == 0) return absl::OkStatus();
    const kernel_backend::AttentionShape shape(qkv, heads);
    absl::StatusOr<Tensor> scratch =
        scratch_.Reserve(*this, qkv.type(), kept.shape());
    if (!scratch.ok()) return scratch.status();
    if constexpr (Device::kHasFusedAttention) {
      if (this->device_.FusesAttention(qkv.type(), shape.head())) {
        return this->device_.AttentionGradient(
            operation, shape, qkv.data<float>(), out.data<float>(),
            kept.data<float>(), out_gradient.data<float>(),
            scratch->template data<float>(), qkv_gradient.data<float>());
      }
    }
    return kernel_backend::ForType(qkv.type(), [&]<typename T>(T) {
      return Backward<T>(operation, shape, qkv.data<T>(), kept.data<T>(),
                         out_gradient.data<T>(), scratch->template data<T>(),
                         qkv_gradient.data<T>());
    });
  }

  Shape KeptByAttention(const ConstTensor& qkv, int64_t heads) const override {
    const kernel_backend::AttentionShape shape(qkv, heads);
    if constexpr (Device::kHasFusedAttention) {
      if (this->device_.FusesAttention(qkv.type(), shape.head())) {
        return {shape.sequences, heads, shape.length};
      }
    }
    return {shape.sequences, heads, shape.length, shape.length};
  }

 protected:
  using KernelRows<Device>::KernelRows;

 private:
  absl::Status Check(const char* operation, const ConstTensor& qkv,
                     int64_t heads, const Argument& out,
                     const ConstTensor& kept) const {
    absl::Status s = CheckAttention(operation, {"qkv", qkv}, heads, out);
    if (!s.ok()) return s;
    return CheckIs(operation, {"kept", kept}, qkv.type(),
                   KeptByAttention(qkv, heads));
  }

  template <typename T>
  absl::Status Forward(const char* operation,
                       const kernel_backend::AttentionShape& shape, const T* q,
                       T* out, T* scores) {
    const T* k = q + shape.width;
    const T* v = k + shape.width;
    const T* softmax = scores;
    for (const absl::Status& s :
         {this->device_.Gemm(
              operation,
              shape.ToScores(shape.InQkv(), shape.InQkv(), shape.scale()), q, k,
              scores),
          this->device_.Rows(operation, shape.rows(),
                             kernels::CausalSoftmax<T>{shape.length, scores}),
          this->device_.Gemm(
              operation,
              shape.FromScores(shape.Scores(), shape.InQkv(), shape.InOut(), 1),
              softmax, v, out)}) {
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // `p` is the softmax, `out` the gradient of the result, `g` scratch for that
  // of the scores.
  template <typename T>
  absl::Status Backward(const char* operation,
                        const kernel_backend::AttentionShape& shape, const T* q,
                        const T* p, const T* out, T* g, T* dq) {
    const T* k = q + shape.width;
    const T* v = k + shape.width;
    T* dk = dq + shape.width;
    T* dv = dk + shape.width;
    const T* done = g;
    const auto in = shape.InQkv();
    const auto back = shape.Scores(/*transpose=*/true);
    // dV = P^T dO; dP = dO V^T; through the softmax; dQ = dP K; dK = dP^T Q
    for (const absl::Status& s :
         {this->device_.Gemm(operation,
                             shape.FromScores(back, shape.InOut(), in, 1), p,
                             out, dv),
          this->device_.Gemm(operation, shape.ToScores(shape.InOut(), in, 1),
                             out, v, g),
          this->device_.Rows(
              operation, shape.rows(),
              kernels::CausalSoftmaxGradient<T>{shape.length, p, g}),
          this->device_.Gemm(
              operation,
              shape.FromScores(shape.Scores(), in, in, shape.scale()), done, k,
              dq),
          this->device_.Gemm(operation,
                             shape.FromScores(back, in, in, shape.scale()),
                             done, q, dk)}) {
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  Scratch scratch_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ATTENTION_H_
