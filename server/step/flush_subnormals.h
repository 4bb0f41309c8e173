#ifndef LOCKSTEP_SERVER_STEP_FLUSH_SUBNORMALS_H_
#define LOCKSTEP_SERVER_STEP_FLUSH_SUBNORMALS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

// TensorFlow's threads treat subnormal operands and results of float32 and
// float64 arithmetic as zeros of the same sign. Two ways to do the same: a
// processor mode, and, on processors without such a mode, FlushedAdd and
// FlushedDivide.
namespace lockstep::server {

// FlushSubnormals switches the calling thread to that mode for its own
// lifetime. A function that needs the mode must take a FlushSubnormals as an
// argument and must not be inlined next to its construction: compilers do not
// take arithmetic to depend on the mode and may move it.
//
// Threads: use on the thread that made it.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  static constexpr bool kByProcessor = true;
  FlushSubnormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
  ~FlushSubnormals() { _mm_setcsr(saved_); }
#else
  static constexpr bool kByProcessor = false;
  FlushSubnormals() = default;
  ~FlushSubnormals() = default;
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  const uint32_t saved_;  // flush-to-zero is bit 15, zero operands bit 6
#endif
};

template <typename T>
T Flushed(T value) {
  const bool normal = !(std::fabs(value) < std::numeric_limits<T>::min());
  return normal ? value : std::copysign(T{0}, value);
}

// A sum below the smallest normal number is exact, so flushing the rounded sum
// equals flushing the exact one.
template <typename T>
T FlushedAdd(T a, T b) {
  return Flushed(Flushed(a) + Flushed(b));
}

// `divisor` must be normal and at least 1. Processors decide before rounding to
// the limited exponent whether a quotient is subnormal; the scaled division
// shows that decision.
template <typename T>
T FlushedDivide(T value, T divisor) {
  constexpr T min = std::numeric_limits<T>::min();
  constexpr T scale = T{1ull << 63};
  const T quotient = Flushed(value) / divisor;
  if (!(std::fabs(quotient) <= min)) return quotient;
  const T scaled = (Flushed(value) * scale) / divisor;
  const bool tiny = std::fabs(scaled) < min * scale;
  return tiny ? std::copysign(T{0}, value) : quotient;
}

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_FLUSH_SUBNORMALS_H_
