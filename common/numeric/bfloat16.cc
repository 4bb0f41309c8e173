#include "common/numeric/bfloat16.h"

#include <cstdint>
#include <cstring>

#include "common/numeric/float16.h"
#include "common/numeric/vector_clones.h"

namespace lockstep {

namespace {

// Rounds to nearest, ties to even; the upper two bytes of the result are the
// bfloat16.
inline uint32_t Rounded(uint32_t bits) {
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  // The fraction's top bit: a NaN whose set bits are all in the lower half
  // would otherwise become infinity.
  const uint32_t quiet = bits | 0x00400000u;
  // Half a unit, less one bit unless the result is odd: ties go to even. An
  // overflow of the fraction carries into the exponent, up to infinity.
  const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  return is_nan ? quiet : nearest;
}

}  // namespace

BFloat16 ToBFloat16(float value) {
  return {static_cast<uint16_t>(Rounded(std::bit_cast<uint32_t>(value)) >> 16)};
}

BFloat16 ToBFloat16(double value) { return ToBFloat16(RoundToOdd(value)); }

LOCKSTEP_CLONES void RoundToBFloat16(size_t count, const std::byte* floats,
                                     std::byte* rounded) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, floats + i * sizeof(bits), sizeof(bits));
    const auto half = static_cast<uint16_t>(Rounded(bits) >> 16);
    std::memcpy(rounded + i * sizeof(half), &half, sizeof(half));
  }
}

LOCKSTEP_CLONES void RoundToBFloat16InPlace(size_t count, std::byte* floats) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, floats + i * sizeof(bits), sizeof(bits));
    const uint32_t rounded = Rounded(bits) & 0xffff0000u;
    std::memcpy(floats + i * sizeof(rounded), &rounded, sizeof(rounded));
  }
}

LOCKSTEP_CLONES void ExpandBFloat16(size_t count, const std::byte* packed,
                                    float* floats) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, packed + i * sizeof(half), sizeof(half));
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    std::memcpy(floats + i, &bits, sizeof(bits));
  }
}

}  // namespace lockstep
