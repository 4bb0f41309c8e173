#ifndef LOCKSTEP_COMMON_BASE_FINGERPRINT_H_
#define LOCKSTEP_COMMON_BASE_FINGERPRINT_H_

#include <cstdint>
#include <string_view>

namespace lockstep {

// The increment of SplitMix64: 2^64 divided by the golden ratio.
inline constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;

// The finalizer of SplitMix64: a bijection in which each bit of the input
// affects about half of the bits of the result. The order of examples and the
// places of rows depend on it: it must never change.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Fingerprint is the 64-bit FNV-1a hash of a sequence of fields. State files
// and initial values depend on it: it must never change. It does not resist
// deliberate collisions.
//
// Threads: not thread-safe.
class Fingerprint {
 public:
  Fingerprint& Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) AddByte(number >> shift);
    return *this;
  }
  // Hashes the length too, so that "ab", "c" differs from "a", "bc".
  Fingerprint& Add(std::string_view text) {
    Add(uint64_t{text.size()});
    for (const char c : text) AddByte(static_cast<unsigned char>(c));
    return *this;
  }
  uint64_t value() const { return hash_; }
  // Returns a number in [0, bound), e.g. the table row of a hashed name;
  // `bound` must be > 0. Mixes the hash first, because its low bits alone are
  // poorly distributed.
  uint64_t Below(uint64_t bound) const {
    return (((hash_ ^ (hash_ >> 32)) * kGoldenRatio) >> 20) % bound;
  }

 private:
  void AddByte(uint64_t byte) {
    hash_ = (hash_ ^ (byte & 0xff)) * 0x100000001b3;
  }

  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_FINGERPRINT_H_
