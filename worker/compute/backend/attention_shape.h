#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_ATTENTION_SHAPE_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_ATTENTION_SHAPE_H_

#include <cmath>
#include <cstdint>

#include "worker/compute/kernels/strided_gemm.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep::worker {
namespace kernel_backend {

// The sizes and operands of the matrix products of an attention. `qkv` is [n,
// t, 3 d]: Q, K and V are blocks of d columns in it, and head h has columns h *
// e to h * e + e - 1 of each block, where e = d / heads. Scores are [n, heads,
// t, t].
//
// `qkv` must have passed CheckAttention(): nothing is checked here.
//
// Units: elements.
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

  int64_t head() const { return width / heads; }  // e
  double scale() const { return 1 / std::sqrt(static_cast<double>(head())); }
  int64_t rows() const { return sequences * heads * length; }  // of all scores

  using Operand = StridedGemm::Operand;
  // Matrices [t, e] of one head: within a block of `qkv`, and within [n, t, d].
  Operand InQkv(bool transpose = false) const {
    return {3 * width, 3 * width * length, head(), transpose};
  }
  Operand InOut(bool transpose = false) const {
    return {width, width * length, head(), transpose};
  }
  Operand Scores(bool transpose = false) const {
    return {length, heads * length * length, length * length, transpose};
  }
  // Products over all heads: scores [t, t] from [t, e] times [e, t], and [t, e]
  // from scores [t, t] times [t, e]. `alpha` multiplies the result.
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

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_ATTENTION_SHAPE_H_
