#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_BF16_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_BF16_H_

#include <cstdint>
#include <cstring>

// The upper half of a float32's bits.
struct __nv_bfloat16 {
  uint16_t bits;
};

// Rounds to nearest, ties to even.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  if (x != x) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline float __bfloat162float(__nv_bfloat16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_BF16_H_
