#include "worker/compute/cpu/elementwise.h"

#include <algorithm>

namespace lockstep::cpu {

template <typename T>
void AddBias(int64_t rows, int64_t n, const T* bias, T* values) {
  for (int64_t row = 0; row < rows; ++row, values += n) {
    for (int64_t i = 0; i < n; ++i) values[i] += bias[i];
  }
}

template <typename T>
void BiasGradient(int64_t rows, int64_t n, const T* out_gradient,
                  T* bias_gradient) {
  std::fill_n(bias_gradient, n, T{0});
  for (int64_t row = 0; row < rows; ++row, out_gradient += n) {
    for (int64_t i = 0; i < n; ++i) bias_gradient[i] += out_gradient[i];
  }
}

// Both work in place after a copy: a loop over two pointers that may be equal
// does not vectorise.
template <typename T>
void Relu(int64_t count, const T* in, T* out) {
  if (in != out) std::copy_n(in, count, out);
  for (int64_t i = 0; i < count; ++i) out[i] = out[i] < T{0} ? T{0} : out[i];
}

template <typename T>
void ReluGradient(int64_t count, const T* out, const T* out_gradient,
                  T* in_gradient) {
  if (out_gradient != in_gradient) {
    std::copy_n(out_gradient, count, in_gradient);
  }
  for (int64_t i = 0; i < count; ++i) {
    in_gradient[i] = out[i] > T{0} ? in_gradient[i] : T{0};
  }
}

template void AddBias(int64_t, int64_t, const float*, float*);
template void AddBias(int64_t, int64_t, const double*, double*);
template void BiasGradient(int64_t, int64_t, const float*, float*);
template void BiasGradient(int64_t, int64_t, const double*, double*);
template void Relu(int64_t, const float*, float*);
template void Relu(int64_t, const double*, double*);
template void ReluGradient(int64_t, const float*, const float*, float*);
template void ReluGradient(int64_t, const double*, const double*, double*);

}  // namespace lockstep::cpu
