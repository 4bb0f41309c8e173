#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_ELEMENTWISE_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_ELEMENTWISE_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "worker/compute/kernels/activation.h"
#include "worker/compute/kernels/counter_random.h"
#include "worker/compute/kernels/host_device.h"

// Operations whose elements do not depend on each other. A kernel has
//
//   Value(i) for each index i in [0, n), or Value(row, column)
//   Target() the tensor whose element i, or row n + column, that value becomes
//
// A value may be computed from the element that it replaces, and from no other
// element of its target; so a caller may compute several values before it
// stores them. Pointers are to dense row-major tensors; those without a comment
// have the shape of the operation's `in` and `out`. T is float or double.
namespace lockstep::worker::kernels {

// values[row, column] += bias[column].
template <typename T>
struct AddBias {
  const T* bias;  // [n]
  int64_t n;
  T* values;  // [rows, n]

  LOCKSTEP_HOST_DEVICE T* Target() const { return values; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    return values[row * n + column] + bias[column];
  }
};

// out[i] = max(in[i], 0); NaN stays NaN. `out` may be `in`.
template <typename T>
struct Relu {
  const T* in;
  T* out;

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t i) const {
    const T x = in[i];
    return x < T{0} ? T{0} : x;
  }
};

// in_gradient[i] = out_gradient[i] where out[i] > 0, else 0, also where out[i]
// is NaN. `in_gradient` may be `out_gradient`.
template <typename T>
struct ReluGradient {
  const T* out;
  const T* out_gradient;
  T* in_gradient;

  LOCKSTEP_HOST_DEVICE T* Target() const { return in_gradient; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t i) const {
    return out[i] > T{0} ? out_gradient[i] : T{0};
  }
};

// The two numbers of GELU's inner polynomial.
inline constexpr double kGeluScale = 0.7978845608028654;  // sqrt(2 / pi)
inline constexpr double kGeluCube = 0.044715;

// tanh by one exponential. |x| is cut off where float and double are 1 anyway;
// NaN passes both comparisons. Near 0 the difference of two numbers near 1
// leaves an absolute error of their last digit.
template <typename T>
LOCKSTEP_HOST_DEVICE inline T Tanh(T x) {
  const T limit = T{20};
  const T inside = x > limit ? limit : (x < -limit ? -limit : x);
  return T{1} - T{2} / (std::exp(T{2} * inside) + T{1});
}

// 1 / (1 + exp(-x)); 0 where exp(-x) overflows.
template <typename T>
LOCKSTEP_HOST_DEVICE inline T Sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

// The argument y of the tanh in GELU's approximation; see Activation::kGelu.
// Since (1 + tanh(y)) / 2 = 1 / (1 + exp(-2 y)), GELU needs one exponential and
// one division.
template <typename T>
LOCKSTEP_HOST_DEVICE inline T GeluInner(T x) {
  return static_cast<T>(kGeluScale) *
         (x + static_cast<T>(kGeluCube) * x * x * x);
}

// out[i] = f(in[i]). NaN stays NaN; GELU of -infinity is -infinity times 0,
// which is NaN. `out` may be `in`.
template <typename T, Activation kind>
struct Activate {
  const T* in;
  T* out;

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t i) const {
    const T x = in[i];
    if constexpr (kind == Activation::kGelu) {
      return x * Sigmoid(T{2} * GeluInner(x));
    } else if constexpr (kind == Activation::kTanh) {
      return Tanh(x);
    } else {
      return Sigmoid(x);
    }
  }
};

// in_gradient[i] = out_gradient[i] f'(in[i]). GELU's slope is NaN where the
// square of in[i] overflows. `in_gradient` may be `out_gradient`.
template <typename T, Activation kind>
struct ActivateGradient {
  const T* in;
  const T* out_gradient;
  T* in_gradient;

  LOCKSTEP_HOST_DEVICE T* Target() const { return in_gradient; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t i) const {
    return out_gradient[i] * Slope(in[i]);
  }

  LOCKSTEP_HOST_DEVICE static T Slope(T x) {
    if constexpr (kind == Activation::kGelu) {
      const T tanh = Tanh(GeluInner(x));
      const T inner = static_cast<T>(kGeluScale) *
                      (T{1} + T{3} * static_cast<T>(kGeluCube) * x * x);
      return T(0.5) * (T{1} + tanh + x * (T{1} - tanh * tanh) * inner);
    } else if constexpr (kind == Activation::kTanh) {
      const T tanh = Tanh(x);
      return T{1} - tanh * tanh;
    } else {
      const T sigmoid = Sigmoid(x);
      return sigmoid * (T{1} - sigmoid);
    }
  }
};

// out = a in + b out, where b = 0 does not read `out`.
template <typename T>
struct Combine {
  const T* in;
  T a;
  T b;
  T* out;

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t i) const {
    return b == T{0} ? a * in[i] : a * in[i] + b * out[i];
  }
};

// out[i] = in[i] as bfloat16: the upper half of its bits, rounded to nearest,
// ties to even; NaN stays NaN. As RoundToBFloat16() of common/numeric, whose
// C++20 nvcc is not set to compile.
struct ToBfloat16 {
  const float* in;
  uint16_t* out;

  LOCKSTEP_HOST_DEVICE uint16_t* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE uint16_t Value(int64_t i) const {
    uint32_t bits = 0;
    std::memcpy(&bits, in + i, sizeof(bits));
    // Rounding up could make infinity of a NaN whose lower half alone says so.
    if (in[i] != in[i]) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// Zero where number i of the key is below `threshold`, else in / (1 - rate).
// Integers are compared, so all devices choose the same elements.
template <typename T>
struct Dropout {
  const T* in;
  uint64_t key;
  uint32_t threshold;  // rate 2^32, rounded down
  T scale;             // 1 / (1 - rate)
  T* out;

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t i) const {
    const bool kept = RandomBits(key, static_cast<uint64_t>(i)) >= threshold;
    return kept ? in[i] * scale : T{0};
  }
};

// out[row, column] = table[ids[row], column].
template <typename T>
struct Embed {
  const T* table;      // [rows, n]
  const int32_t* ids;  // [count], each in [0, rows)
  int64_t n;
  T* out;  // [count, n]

  LOCKSTEP_HOST_DEVICE T* Target() const { return out; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    return table[ids[row] * n + column];
  }
};

// table_gradient[row, column] = the sum of out_gradient[k, column] over the
// places k with ids[k] == row, in their order. Each element reads all ids, so
// this is for small tables such as the 256 bytes of text.
template <typename T>
struct EmbedGradient {
  const int32_t* ids;  // [count]
  int64_t count;
  int64_t n;
  const T* out_gradient;  // [count, n]
  T* table_gradient;      // [rows, n]

  LOCKSTEP_HOST_DEVICE T* Target() const { return table_gradient; }
  LOCKSTEP_HOST_DEVICE T Value(int64_t row, int64_t column) const {
    T sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (ids[i] == row) sum += out_gradient[i * n + column];
    }
    return sum;
  }
};

}  // namespace lockstep::worker::kernels

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_ELEMENTWISE_H_
