#ifndef LOCKSTEP_COMMON_NUMERIC_BFLOAT16_H_
#define LOCKSTEP_COMMON_NUMERIC_BFLOAT16_H_

#include <bit>
#include <cstddef>
#include <cstdint>

// A bfloat16 is the upper two bytes of a float32: 1 sign, 8 exponent and 7
// fraction bits, in native byte order.
//
// Conversions from and to float do no floating-point arithmetic, so their
// results do not depend on whether subnormal numbers are flushed to zero.
namespace lockstep {

inline constexpr size_t kBFloat16Size = 2;  // bytes

// A bfloat16 in memory. Variables of this type are an extension to TensorFlow's
// rules: arithmetic on them is done in float32, and each update rounds once.
struct BFloat16 {
  uint16_t bits = 0;
};

// Exact.
inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

// Rounds as RoundToBFloat16().
BFloat16 ToBFloat16(float value);

// Rounds once. Where subnormal numbers are flushed, it may return zero instead
// of one.
BFloat16 ToBFloat16(double value);

// Rounds `count` float32 to nearest, ties to even; values that are too large
// become infinity, every NaN a quiet NaN. Both pointers may be unaligned; the
// ranges must not overlap.
void RoundToBFloat16(size_t count, const std::byte* floats, std::byte* rounded);

// Overwrites each of `count` float32 with the value of its bfloat16.
void RoundToBFloat16InPlace(size_t count, std::byte* floats);

// Exact. `packed` holds `count` bfloat16, may be unaligned, and must not
// overlap `floats`.
void ExpandBFloat16(size_t count, const std::byte* packed, float* floats);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_BFLOAT16_H_
