#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_ROWS_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_ROWS_H_

#include <cmath>
#include <cstdint>

#include "worker/compute/kernels/host_device.h"

// Operations in which the elements of a row depend on each other, but rows do
// not. A kernel is called once for each row by a Group, which is one thread on
// the CPU, and a warp or a block of them on a GPU:
//
//   group.Map(n, out, f)     out[i] = f(i) for i in [0, n); f may read out[i],
//                            and no other element of `out`
//   group.Sum<T>(n, f)       the sum of f(i), in an order fixed by n alone
//   group.Max<T>(n, f)       the largest f(i), leaving out NaN; -infinity if n
//                            is 0
//   group.Leads()            true in exactly one of its threads
//
// RowLength() is the number of elements of a row, by which a device chooses its
// groups. All threads of a group make the same calls. Values that one thread
// wrote before a call can be read by every thread after it.
//
// Pointers are to dense row-major tensors, [rows, n] unless said. T is float or
// double.
namespace lockstep::worker::kernels {

// -log(softmax(logits)[label]) of a row, and its gradient times `scale`. The
// largest logit is taken off first, so that exp() cannot overflow. A NaN or
// +infinity in a row makes its loss and gradient NaN.
template <typename T>
struct SoftmaxCrossEntropy {
  int64_t classes;
  const T* logits;        // [rows, classes]
  const int32_t* labels;  // [rows], each in [0, classes)
  T scale;                // 1 / rows for the gradient of a mean
  T* gradient;            // [rows, classes]
  double* losses;         // one per row

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return classes; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    const T* in = logits + row * classes;
    T* out = gradient + row * classes;
    const int32_t label = labels[row];
    const T largest =
        group.template Max<T>(classes, [=](int64_t i) { return in[i]; });
    const T sum = group.template Sum<T>(
        classes, [=](int64_t i) { return std::exp(in[i] - largest); });
    const T factor = scale / sum;
    const T at_label = scale;
    group.Map(classes, out, [=](int64_t i) {
      const T share = std::exp(in[i] - largest) * factor;
      return i == label ? share - at_label : share;
    });
    if (group.Leads()) {
      losses[row] = static_cast<double>(std::log(sum) - (in[label] - largest));
    }
  }
};

// correct[row] = 1 if the row is largest at its label, of equals the first; 0
// otherwise, and if any of the row's logits is NaN.
template <typename T>
struct IsCorrect {
  int64_t classes;
  const T* logits;        // [rows, classes]
  const int32_t* labels;  // [rows]
  double* correct;        // [rows]

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return classes; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    const T* in = logits + row * classes;
    const int32_t label = labels[row];
    const double beaten = group.template Sum<double>(classes, [=](int64_t i) {
      const bool holds = i < label ? in[label] > in[i] : in[label] >= in[i];
      return holds ? 0.0 : 1.0;
    });
    if (group.Leads()) correct[row] = beaten == 0 ? 1 : 0;
  }
};

// quotient[0] = the sum of all values / divisor; called for one row.
struct Total {
  int64_t count;
  const double* values;  // [count]
  double divisor;
  double* quotient;  // [1]

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return count; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t) const {
    const double* in = values;
    const double total =
        group.template Sum<double>(count, [=](int64_t i) { return in[i]; });
    if (group.Leads()) *quotient = total / divisor;
  }
};

// counts[row] = the number of NaN and infinite elements among elements
// [row n, row n + n) of `count` in all.
template <typename T>
struct CountNonFinite {
  int64_t count;
  int64_t n;
  const T* values;  // [count]
  double* counts;   // [rows], rows = count / n rounded up

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return n; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    const T* in = values + row * n;
    const int64_t left = count - row * n;
    const double found = group.template Sum<double>(
        left < n ? left : n,
        [=](int64_t i) { return in[i] - in[i] == T{0} ? 0.0 : 1.0; });
    if (group.Leads()) counts[row] = found;
  }
};

// out = (in - mean) / sqrt(variance + epsilon) * scale + shift over a row.
// `statistics` [rows, 2] keeps the mean and the reciprocal deviation.
template <typename T>
struct LayerNorm {
  int64_t n;
  T epsilon;
  const T* in;
  const T* scale;  // [n]
  const T* shift;  // [n]
  T* out;
  T* statistics;  // [rows, 2]

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return n; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    const T* x = in + row * n;
    T* y = out + row * n;
    const T* gain = scale;
    const T* offset = shift;
    const T count = static_cast<T>(n);
    const T mean =
        group.template Sum<T>(n, [=](int64_t i) { return x[i]; }) / count;
    const T variance = group.template Sum<T>(n, [=](int64_t i) {
      return (x[i] - mean) * (x[i] - mean);
    }) / count;
    const T factor = T{1} / std::sqrt(variance + epsilon);
    group.Map(n, y, [=](int64_t i) {
      return (x[i] - mean) * factor * gain[i] + offset[i];
    });
    if (group.Leads()) {
      statistics[2 * row] = mean;
      statistics[2 * row + 1] = factor;
    }
  }
};

// With h = (in - mean) factor and g = out_gradient scale:
// in_gradient = factor (g - mean(g) - h mean(g h)).
template <typename T>
struct LayerNormGradient {
  int64_t n;
  const T* in;
  const T* scale;       // [n]
  const T* statistics;  // [rows, 2], as LayerNorm wrote them
  const T* out_gradient;
  T* in_gradient;

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return n; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    const T* x = in + row * n;
    const T* dy = out_gradient + row * n;
    T* dx = in_gradient + row * n;
    const T* gain = scale;
    const T mean = statistics[2 * row];
    const T factor = statistics[2 * row + 1];
    const T count = static_cast<T>(n);
    const T mean_g = group.template Sum<T>(n, [=](int64_t i) {
      return dy[i] * gain[i];
    }) / count;
    const T mean_gh = group.template Sum<T>(n, [=](int64_t i) {
      return dy[i] * gain[i] * (x[i] - mean) * factor;
    }) / count;
    group.Map(n, dx, [=](int64_t i) {
      const T h = (x[i] - mean) * factor;
      return factor * (dy[i] * gain[i] - mean_g - h * mean_gh);
    });
  }
};

// Softmax over the positions that position `row % length` may see: itself and
// those before it. Zero for the positions after it. In place.
template <typename T>
struct CausalSoftmax {
  int64_t length;
  T* scores;  // [rows, length]

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return length; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    T* x = scores + row * length;
    const int64_t seen = row % length + 1;
    const T largest =
        group.template Max<T>(seen, [=](int64_t i) { return x[i]; });
    group.Map(length, x, [=](int64_t i) {
      return i < seen ? std::exp(x[i] - largest) : T{0};
    });
    const T sum = group.template Sum<T>(seen, [=](int64_t i) { return x[i]; });
    const T factor = T{1} / sum;
    group.Map(seen, x, [=](int64_t i) { return x[i] * factor; });
  }
};

// With p the softmax and g its gradient, g becomes p (g - sum(p g)). In place.
// Positions that row does not see are neither read nor summed, and become 0.
template <typename T>
struct CausalSoftmaxGradient {
  int64_t length;
  const T* probabilities;  // [rows, length]
  T* gradient;             // [rows, length]

  LOCKSTEP_HOST_DEVICE int64_t RowLength() const { return length; }
  template <typename Group>
  LOCKSTEP_HOST_DEVICE void operator()(Group& group, int64_t row) const {
    const T* p = probabilities + row * length;
    T* g = gradient + row * length;
    const int64_t seen = row % length + 1;
    const T sum =
        group.template Sum<T>(seen, [=](int64_t i) { return p[i] * g[i]; });
    group.Map(length, g,
              [=](int64_t i) { return i < seen ? p[i] * (g[i] - sum) : T{0}; });
  }
};

}  // namespace lockstep::worker::kernels

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_ROWS_H_
