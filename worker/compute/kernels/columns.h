#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_COLUMNS_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_COLUMNS_H_

#include <cmath>
#include <cstdint>

#include "worker/compute/kernels/host_device.h"

// Sums over the rows of a matrix: a kernel returns the summand of each (row,
// column), and the device adds over the rows. Also the operations of batch norm
// that use such sums, an element at a time.
//
// Pointers are to dense row-major tensors: [rows, n], or [n] for those that are
// per column, such as means, scale, shift and their gradients. T is float or
// double.
namespace lockstep::worker::kernels {

// values[row, column] * factor; with factor 1 the sums are those of the
// columns.
template <typename T>
struct Element {
  const T* values;
  int64_t n;
  T factor;

  LOCKSTEP_HOST_DEVICE T operator()(int64_t row, int64_t column) const {
    return values[row * n + column] * factor;
  }
};

// The summand of a variance, (x - mean[column])^2 factor; factor is 1 / rows.
template <typename T>
struct SquaredDistance {
  const T* values;
  const T* mean;
  int64_t n;
  T factor;

  LOCKSTEP_HOST_DEVICE T operator()(int64_t row, int64_t column) const {
    const T distance = values[row * n + column] - mean[column];
    return distance * distance * factor;
  }
};

// The summand of a layer norm's scale gradient: out_gradient times the
// normalised input. `statistics` hold mean and reciprocal deviation by row.
template <typename T>
struct LayerNormScale {
  const T* in;
  const T* statistics;  // [rows, 2]
  const T* out_gradient;
  int64_t n;

  LOCKSTEP_HOST_DEVICE T operator()(int64_t row, int64_t column) const {
    const int64_t i = row * n + column;
    return out_gradient[i] * (in[i] - statistics[2 * row]) *
           statistics[2 * row + 1];
  }
};

// A batch norm's statistics by column: row 0 has means, row 1 variances.
// `epsilon` must be above 0, so that a constant column has a finite factor.
template <typename T>
struct Moments {
  const T* statistics;  // [2, n]
  int64_t n;
  T epsilon;

  // The reciprocal deviation of a column.
  LOCKSTEP_HOST_DEVICE T factor(int64_t column) const {
    return T{1} / std::sqrt(statistics[n + column] + epsilon);
  }
  // `x` with mean 0 and variance 1.
  LOCKSTEP_HOST_DEVICE T Normal(T x, int64_t column) const {
    return (x - statistics[column]) * factor(column);
  }
};

// The summand of a batch norm's scale gradient: out_gradient times the
// normalised input.
template <typename T>
struct BatchNormScale {
  const T* in;
  Moments<T> moments;
  const T* out_gradient;

  LOCKSTEP_HOST_DEVICE T operator()(int64_t row, int64_t column) const {
    const int64_t i = row * moments.n + column;
    return out_gradient[i] * moments.Normal(in[i], column);
  }
};

// out = normalised in * scale[column] + shift[column].
template <typename T>
struct BatchNorm {
  const T* in;
  Moments<T> moments;
  const T* scale;
  const T* shift;
  T* out;

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const int64_t i = row * moments.n + column;
    return moments.Normal(in[i], column) * scale[column] + shift[column];
  }
};

// The statistics are of this very batch, so they have gradients too: with h the
// normalised input and means over the batch,
// in_gradient = scale factor (g - mean(g) - h mean(g h)). `in_gradient` may be
// `out_gradient`: each value is computed from the element that it replaces.
template <typename T>
struct BatchNormGradient {
  const T* in;
  Moments<T> moments;
  const T* scale;
  const T* out_gradient;
  const T* scale_gradient;  // sum of g h
  const T* shift_gradient;  // sum of g
  T one_over_rows;
  T* in_gradient;

  LOCKSTEP_HOST_DEVICE T* Target() const { return in_gradient; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    const int64_t i = row * moments.n + column;
    const T h = moments.Normal(in[i], column);
    const T mean_g = shift_gradient[column] * one_over_rows;
    const T mean_gh = scale_gradient[column] * one_over_rows;
    return scale[column] * moments.factor(column) *
           (out_gradient[i] - mean_g - h * mean_gh);
  }
};

}  // namespace lockstep::worker::kernels

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_COLUMNS_H_
