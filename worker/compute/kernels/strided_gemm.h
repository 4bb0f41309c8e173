#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_STRIDED_GEMM_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_STRIDED_GEMM_H_

#include <cstdint>

namespace lockstep::worker {

// out = alpha a b, or out += alpha a b, for a batch of row-major matrices that
// may lie inside of larger ones: rows of a matrix are its stride apart. The
// batch has two levels; matrix (i, j) starts at i * outer + j * inner.
//
// No element of `out` may be an element of `a` or `b`. All three may lie in one
// tensor, as Q, K and V do in `qkv`.
//
// Units: elements; sides and strides are at most INT32_MAX.
struct StridedGemm {
  struct Operand {
    int64_t stride = 0;      // from one stored row to the next
    int64_t outer = 0;       // from matrix (i, j) to (i + 1, j)
    int64_t inner = 0;       // from matrix (i, j) to (i, j + 1)
    bool transpose = false;  // the stored matrix is the transpose
  };

  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;  // 0: the product is zero
  Operand a;      // [m, k]
  Operand b;      // [k, n]
  Operand out;    // [m, n], never transposed
  double alpha = 1;
  bool accumulate = false;  // add to `out` instead of overwriting it
  int64_t outer_count = 1;
  int64_t inner_count = 1;

  int64_t Offset(const Operand& operand, int64_t i, int64_t j) const {
    return i * operand.outer + j * operand.inner;
  }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_STRIDED_GEMM_H_
