#ifndef LOCKSTEP_COMMON_NUMERIC_BFLOAT16_H_
#define LOCKSTEP_COMMON_NUMERIC_BFLOAT16_H_

#include <bit>
#include <cstddef>
#include <cstdint>

// A bfloat16 is the upper two bytes of a float32: 1 sign, 8 exponent and 7
// fraction bits, in native byte order.
//
// No conversion does floating-point arithmetic, so that they mean the same
// where subnormal numbers are flushed to zero.
namespace lockstep {

inline constexpr size_t kBFloat16Size = 2;  // bytes

// One in memory. Variables of it are an extension to TensorFlow's rules: what
// is computed with them is computed in float32, and rounded once for each
// update.
struct BFloat16 {
  uint16_t bits = 0;
};

// Exact.
inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

// As RoundToBFloat16() does.
BFloat16 ToBFloat16(float value);

// Rounds `count` float32 to nearest, ties to even; too large becomes infinity,
// every NaN a quiet one. Both ends are at any address and do not overlap.
void RoundToBFloat16(size_t count, const std::byte* floats, std::byte* rounded);

// The same, with each float32 overwritten by what its bfloat16 stands for.
void RoundToBFloat16InPlace(size_t count, std::byte* floats);

// Exact. `packed`, `count` bfloat16, is at any address and does not overlap
// `floats`.
void ExpandBFloat16(size_t count, const std::byte* packed, float* floats);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_BFLOAT16_H_
