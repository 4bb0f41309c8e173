#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ATTENTION_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ATTENTION_H_

#include <cmath>
#include <cstdint>

#include "worker/compute/backend/kernel_backend_rows.h"
#include "worker/compute/backend/kernel_backend_types.h"
#include "worker/compute/backend/operation_checks.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/kernels/rows.h"
#include "worker/compute/kernels/strided_gemm.h"

namespace lockstep::worker {
namespace kernel_backend {

// The products of an attention over one [n, t, 3 d] tensor: Q, K and V are
// blocks of columns in it, and `scores` is [n, heads, t, t].
struct AttentionShape {
  int64_t sequences;
  int64_t length;
  int64_t width;  // d
  int64_t heads;

  AttentionShape(const ConstTensor& qkv, int64_t head_count)
      : sequences(qkv.dim(0)),
        length(qkv.dim(1)),
        width(qkv.dim(2) / 3),
        heads(head_count) {}

  int64_t head() const { return width / heads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head())); }
  int64_t rows() const { return sequences * heads * length; }

  using Operand = StridedGemm::Operand;
  // Vectors of the heads inside of `qkv`, and of [n, t, d].
  Operand InQkv(bool transpose = false) const {
    return {3 * width, 3 * width * length, head(), transpose};
  }
  Operand InOut(bool transpose = false) const {
    return {width, width * length, head(), transpose};
  }
  Operand Scores(bool transpose = false) const {
    return {length, heads * length * length, length * length, transpose};
  }
  // [t, t] = [t, e] [e, t], or [t, e] = [t, t] [t, e].
  StridedGemm ToScores(const Operand& a, Operand b, double alpha) const {
    b.transpose = true;
    return Product(length, head(), a, b, Scores(), alpha);
  }
  StridedGemm FromScores(const Operand& scores, const Operand& b,
                         const Operand& out, double alpha) const {
    return Product(head(), length, scores, b, out, alpha);
  }

 private:
  StridedGemm Product(int64_t n, int64_t k, const Operand& a, const Operand& b,
                      const Operand& out, double alpha) const {
    return {.m = length,
            .n = n,
            .k = k,
            .a = a,
            .b = b,
            .out = out,
            .alpha = alpha,
            .outer_count = sequences,
            .inner_count = heads};
  }
};

}  // namespace kernel_backend

// KernelAttention is the attention of KernelBackend.
template <typename Device>
class KernelAttention : public KernelRows<Device> {
 public:
  // qkv [sequences, length, 3 width], out [sequences, length, width],
  // probabilities [sequences, heads, length, length]. Queries, keys and values
  // lie side by side in qkv, those of a head in a row of width / heads; nothing
  // is copied apart: S = Q K^T scale, P = softmax(S), O = P V.
  absl::Status CausalAttention(const ConstTensor& qkv, int64_t heads,
                               const Tensor& out,
                               const Tensor& probabilities) override {
    const char* operation = "CausalAttention";
    if (absl::Status s =
            CheckAttention(operation, {"qkv", qkv}, heads, {"out", out},
                           {"probabilities", probabilities});
        !s.ok()) {
      return s;
    }
    if (qkv.size() == 0) return absl::OkStatus();
    const kernel_backend::AttentionShape shape(qkv, heads);
    return kernel_backend::ForType(
        qkv.type(), [&]<typename T>(T) -> absl::Status {
          const T* q = qkv.data<T>();
          const T* k = q + shape.width;
          const T* v = k + shape.width;
          T* scores = probabilities.data<T>();
          if (absl::Status s = this->device_.Gemm(
                  operation,
                  shape.ToScores(shape.InQkv(), shape.InQkv(), shape.scale()),
                  q, k, scores);
              !s.ok()) {
            return s;
          }
          if (absl::Status s = this->device_.Rows(
                  operation, shape.rows(),
                  kernels::CausalSoftmax<T>{shape.length, scores});
              !s.ok()) {
            return s;
          }
          const T* softmax = scores;
          return this->device_.Gemm(
              operation,
              shape.FromScores(shape.Scores(), shape.InQkv(), shape.InOut(), 1),
              softmax, v, out.data<T>());
        });
  }

  // As CausalAttention(); out_gradient as `out`, qkv_gradient as `qkv`. The
  // gradient of the scores needs memory of the shape of `probabilities`, which
  // stays as it is for a second call.
  absl::Status CausalAttentionGradient(const ConstTensor& qkv, int64_t heads,
                                       const ConstTensor& probabilities,
                                       const ConstTensor& out_gradient,
                                       const Tensor& qkv_gradient) override {
    const char* operation = "CausalAttentionGradient";
    if (absl::Status s = CheckAttention(operation, {"qkv", qkv}, heads,
                                        {"out_gradient", out_gradient},
                                        {"probabilities", probabilities});
        !s.ok()) {
      return s;
    }
    if (absl::Status s = CheckSame(operation, {"qkv", qkv},
                                   {{"qkv_gradient", qkv_gradient}});
        !s.ok()) {
      return s;
    }
    if (qkv.size() == 0) return absl::OkStatus();
    const kernel_backend::AttentionShape shape(qkv, heads);
    absl::StatusOr<Tensor> scores =
        scores_.Reserve(*this, qkv.type(), probabilities.shape());
    if (!scores.ok()) return scores.status();
    return kernel_backend::ForType(
        qkv.type(), [&]<typename T>(T) -> absl::Status {
          const T* q = qkv.data<T>();
          const T* k = q + shape.width;
          const T* v = k + shape.width;
          const T* p = probabilities.data<T>();
          const T* out = out_gradient.data<T>();
          T* dq = qkv_gradient.data<T>();
          T* dk = dq + shape.width;
          T* dv = dk + shape.width;
          T* g = scores->data<T>();
          const T* done = g;
          const auto in = shape.InQkv();
          const auto back = shape.Scores(/*transpose=*/true);
          // dV = P^T dO; dP = dO V^T; through the softmax; dQ = dP K; dK = dP^T
          // Q
          for (const absl::Status& s :
               {this->device_.Gemm(operation,
                                   shape.FromScores(back, shape.InOut(), in, 1),
                                   p, out, dv),
                this->device_.Gemm(
                    operation, shape.ToScores(shape.InOut(), in, 1), out, v, g),
                this->device_.Rows(
                    operation, shape.rows(),
                    kernels::CausalSoftmaxGradient<T>{shape.length, p, g}),
                this->device_.Gemm(
                    operation,
                    shape.FromScores(shape.Scores(), in, in, shape.scale()),
                    done, k, dq),
                this->device_.Gemm(
                    operation, shape.FromScores(back, in, in, shape.scale()),
                    done, q, dk)}) {
            if (!s.ok()) return s;
          }
          return absl::OkStatus();
        });
  }

 protected:
  using KernelRows<Device>::KernelRows;

 private:
  Scratch scores_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_KERNEL_BACKEND_ATTENTION_H_
