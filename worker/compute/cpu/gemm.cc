#include "worker/compute/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>

namespace lockstep::cpu {
namespace {

CBLAS_TRANSPOSE Transpose(bool transpose) {
  return transpose ? CblasTrans : CblasNoTrans;
}

blasint Side(int64_t side) { return static_cast<blasint>(side); }

void Blas(const GemmShape& s, const float* a, const float* b, float beta,
          float* out) {
  cblas_sgemm(CblasRowMajor, Transpose(s.transpose_a), Transpose(s.transpose_b),
              Side(s.m), Side(s.n), Side(s.k), 1.0f, a,
              Side(s.transpose_a ? s.m : s.k), b,
              Side(s.transpose_b ? s.k : s.n), beta, out, Side(s.n));
}

void Blas(const GemmShape& s, const double* a, const double* b, double beta,
          double* out) {
  cblas_dgemm(CblasRowMajor, Transpose(s.transpose_a), Transpose(s.transpose_b),
              Side(s.m), Side(s.n), Side(s.k), 1.0, a,
              Side(s.transpose_a ? s.m : s.k), b,
              Side(s.transpose_b ? s.k : s.n), beta, out, Side(s.n));
}

}  // namespace

template <typename T>
void Gemm(const GemmShape& shape, const T* a, const T* b, bool accumulate,
          T* out) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {  // BLAS refuses leading dimensions of 0
    if (!accumulate) std::fill_n(out, shape.m * shape.n, T{0});
    return;
  }
  Blas(shape, a, b, accumulate ? T{1} : T{0}, out);
}

template void Gemm(const GemmShape&, const float*, const float*, bool, float*);
template void Gemm(const GemmShape&, const double*, const double*, bool,
                   double*);

}  // namespace lockstep::cpu
