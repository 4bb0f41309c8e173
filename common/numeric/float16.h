#ifndef LOCKSTEP_COMMON_NUMERIC_FLOAT16_H_
#define LOCKSTEP_COMMON_NUMERIC_FLOAT16_H_

#include <bit>
#include <cmath>
#include <cstdint>

// Float16 is an IEEE half in memory: 1 sign, 5 exponent and 10 fraction bits.
// Arithmetic on it is float32 arithmetic with one more rounding of the result;
// for a single + - * or / the result is the correctly rounded half.
//
// Conversions from and to float do no floating-point arithmetic, so their
// results do not depend on whether subnormal numbers are flushed to zero.
namespace lockstep {

struct Float16 {
  uint16_t bits = 0;
};

// Exact, also for subnormals. A NaN keeps its sign and its fraction.
inline float ToFloat(Float16 half) {
  const uint32_t sign = (half.bits & 0x8000u) << 16;
  const uint32_t exponent = (half.bits >> 10) & 0x1fu;
  const uint32_t fraction = half.bits & 0x3ffu;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  }
  if (fraction == 0) return std::bit_cast<float>(sign);
  const int shift =
      std::countl_zero(fraction) - 21;  // brings the top bit to 10
  const uint32_t top = static_cast<uint32_t>(113 - shift) << 23;
  return std::bit_cast<float>(sign | top |
                              ((fraction << shift) & 0x3ffu) << 13);
}

// Drops the low `shift` bits of `value`, to nearest, ties to even.
inline uint32_t ShiftRightToNearestEven(uint32_t value, int shift) {
  const uint32_t half = 1u << (shift - 1);
  const uint32_t odd = (value >> shift) & 1u;
  return (value + half - 1 + odd) >> shift;
}

// Rounds to nearest, ties to even; values that are too large become infinity,
// every NaN a quiet NaN.
inline Float16 ToFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520: half way to 2^16
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14: the smallest normal half
    half = ShiftRightToNearestEven(magnitude - 0x38000000u, 13);
  } else if (magnitude >= 0x33000000u) {  // 2^-25: half the smallest subnormal
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const int exponent = static_cast<int>(magnitude >> 23);
    half = ShiftRightToNearestEven(significand, 126 - exponent);
  }
  return Float16{static_cast<uint16_t>(sign | half)};
}

// Rounds to odd: the float32 keeps all information that a second rounding, to
// fewer bits, needs.
inline float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(nearest)) {
    return nearest;
  }
  auto bits = std::bit_cast<uint32_t>(nearest);
  const bool too_small =
      std::fabs(static_cast<double>(nearest)) < std::fabs(value);
  if ((bits & 1u) == 0) bits += too_small ? 1u : ~0u;
  return std::bit_cast<float>(bits);
}

// Rounds once.
inline Float16 ToFloat16(double value) { return ToFloat16(RoundToOdd(value)); }

inline Float16 operator-(Float16 a) {
  return Float16{static_cast<uint16_t>(a.bits ^ 0x8000u)};
}
inline Float16 operator+(Float16 a, Float16 b) {
  return ToFloat16(ToFloat(a) + ToFloat(b));
}
inline Float16 operator-(Float16 a, Float16 b) {
  return ToFloat16(ToFloat(a) - ToFloat(b));
}
inline Float16 operator*(Float16 a, Float16 b) {
  return ToFloat16(ToFloat(a) * ToFloat(b));
}
inline Float16 operator/(Float16 a, Float16 b) {
  return ToFloat16(ToFloat(a) / ToFloat(b));
}
// Compares values: 0 equals -0, and a NaN equals nothing.
inline bool operator==(Float16 a, Float16 b) {
  return ToFloat(a) == ToFloat(b);
}
inline bool operator<(Float16 a, Float16 b) { return ToFloat(a) < ToFloat(b); }
inline bool operator>(Float16 a, Float16 b) { return ToFloat(a) > ToFloat(b); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_FLOAT16_H_
