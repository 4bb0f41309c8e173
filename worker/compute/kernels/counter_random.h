#ifndef LOCKSTEP_WORKER_COMPUTE_KERNELS_COUNTER_RANDOM_H_
#define LOCKSTEP_WORKER_COMPUTE_KERNELS_COUNTER_RANDOM_H_

#include <cstdint>

#include "worker/compute/kernels/host_device.h"

namespace lockstep::worker::kernels {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
LOCKSTEP_HOST_DEVICE inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 32 random bits that follow from a key and a counter alone: element i of a
// tensor draws number i, in any order and on any device.
LOCKSTEP_HOST_DEVICE inline uint32_t RandomBits(uint64_t key,
                                                uint64_t counter) {
  return static_cast<uint32_t>(Mix(Mix(key) ^ counter) >> 32);
}

}  // namespace lockstep::worker::kernels

#endif  // LOCKSTEP_WORKER_COMPUTE_KERNELS_COUNTER_RANDOM_H_
