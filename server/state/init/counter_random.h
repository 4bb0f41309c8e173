#ifndef LOCKSTEP_SERVER_STATE_INIT_COUNTER_RANDOM_H_
#define LOCKSTEP_SERVER_STATE_INIT_COUNTER_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "common/base/fingerprint.h"

namespace lockstep::server {

// CounterRandom gives random numbers by index, in any order: number i depends
// only on (seed, name, i).
//
// Threads: immutable.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, std::string_view name)
      : CounterRandom(Mix(Fingerprint().Add(seed).Add(name).value())) {}

  // Numbers that are independent of these and of those for every other key.
  CounterRandom OfKey(int64_t key) const {
    return CounterRandom(
        Mix(key_ + Mix(static_cast<uint64_t>(key) + 0x9e3779b97f4a7c15)));
  }

  // In [0, 1), of 53 random bits. Each index has two independent draws.
  double Uniform(int64_t index, int draw) const {
    const uint64_t counter = 2 * static_cast<uint64_t>(index) + draw + 1;
    return static_cast<double>(Mix(key_ + counter * 0x9e3779b97f4a7c15) >> 11) *
           0x1p-53;
  }

  // Mean 0, standard deviation 1, by the method of Box and Muller.
  double Normal(int64_t index) const {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(index, 0)));
    return radius * std::cos(2 * std::numbers::pi * Uniform(index, 1));
  }

  // As Normal(), but numbers beyond 2 are drawn again.
  double TruncatedNormal(int64_t index) const {
    CounterRandom draw = *this;
    double value = draw.Normal(index);
    while (std::fabs(value) > 2) {
      draw = CounterRandom(Mix(draw.key_));
      value = draw.Normal(index);
    }
    return value;
  }

 private:
  explicit CounterRandom(uint64_t key) : key_(key) {}

  // The finalizer of SplitMix64: a bijection in which every bit of the input
  // moves about half of the output.
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  uint64_t key_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_INIT_COUNTER_RANDOM_H_
