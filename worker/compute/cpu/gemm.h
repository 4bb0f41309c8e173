#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_GEMM_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_GEMM_H_

#include <cstdint>

#include "worker/compute/kernels/strided_gemm.h"

namespace lockstep::worker::cpu {

// out [m,n] = a [m,k] b [k,n]; a transposed matrix is stored as [k,m] or [n,k].
// Sides are at most INT32_MAX.
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

// Matrices are row-major and dense. Adds to `out` if `accumulate`, else
// overwrites it, even where it held NaN. T is float or double.
template <typename T>
void Gemm(const GemmShape& shape, const T* a, const T* b, bool accumulate,
          T* out);

// Multiplies each pair of a batch of matrices, which may lie inside of larger
// ones.
template <typename T>
void Gemm(const StridedGemm& gemm, const T* a, const T* b, T* out);

}  // namespace lockstep::worker::cpu

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_GEMM_H_
