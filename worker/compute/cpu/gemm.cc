#include "worker/compute/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>

namespace lockstep::worker::cpu {
namespace {

CBLAS_TRANSPOSE Transpose(bool transpose) {
  return transpose ? CblasTrans : CblasNoTrans;
}

// operation_checks.h limits sides, so they fit.
blasint Side(int64_t side) { return static_cast<blasint>(side); }

void Blas(const StridedGemm& s, const float* a, const float* b, float* out) {
  cblas_sgemm(CblasRowMajor, Transpose(s.a.transpose), Transpose(s.b.transpose),
              Side(s.m), Side(s.n), Side(s.k), static_cast<float>(s.alpha), a,
              Side(s.a.stride), b, Side(s.b.stride), s.accumulate ? 1.0f : 0.0f,
              out, Side(s.out.stride));
}

void Blas(const StridedGemm& s, const double* a, const double* b, double* out) {
  cblas_dgemm(CblasRowMajor, Transpose(s.a.transpose), Transpose(s.b.transpose),
              Side(s.m), Side(s.n), Side(s.k), s.alpha, a, Side(s.a.stride), b,
              Side(s.b.stride), s.accumulate ? 1.0 : 0.0, out,
              Side(s.out.stride));
}

// Multiplies one pair of matrices of the batch.
template <typename T>
void One(const StridedGemm& gemm, const T* a, const T* b, T* out) {
  if (gemm.m == 0 || gemm.n == 0) return;
  // A beta of 0 makes BLAS overwrite `out` without reading it.
  if (gemm.k > 0) return Blas(gemm, a, b, out);
  if (gemm.accumulate) return;
  for (int64_t row = 0; row < gemm.m; ++row) {  // BLAS refuses sides of 0
    std::fill_n(out + row * gemm.out.stride, gemm.n, T{0});
  }
}

}  // namespace

template <typename T>
void Gemm(const GemmShape& shape, const T* a, const T* b, bool accumulate,
          T* out) {
  One({.m = shape.m,
       .n = shape.n,
       .k = shape.k,
       .a = {.stride = shape.transpose_a ? shape.m : shape.k,
             .transpose = shape.transpose_a},
       .b = {.stride = shape.transpose_b ? shape.k : shape.n,
             .transpose = shape.transpose_b},
       .out = {.stride = shape.n},
       .accumulate = accumulate},
      a, b, out);
}

template <typename T>
void Gemm(const StridedGemm& gemm, const T* a, const T* b, T* out) {
  // CBLAS has no batched product in its standard interface.
  for (int64_t i = 0; i < gemm.outer_count; ++i) {
    for (int64_t j = 0; j < gemm.inner_count; ++j) {
      One(gemm, a + gemm.Offset(gemm.a, i, j), b + gemm.Offset(gemm.b, i, j),
          out + gemm.Offset(gemm.out, i, j));
    }
  }
}

template void Gemm(const StridedGemm&, const float*, const float*, float*);
template void Gemm(const StridedGemm&, const double*, const double*, double*);
template void Gemm(const GemmShape&, const float*, const float*, bool, float*);
template void Gemm(const GemmShape&, const double*, const double*, bool,
                   double*);

}  // namespace lockstep::worker::cpu
