#ifndef LOCKSTEP_WORKER_DATA_EPOCH_SHUFFLE_H_
#define LOCKSTEP_WORKER_DATA_EPOCH_SHUFFLE_H_

#include <cstdint>
#include <vector>

namespace lockstep::worker {

// SplitMix64 is a small random generator. Unlike the distributions of <random>,
// its numbers are the same with every compiler and standard library.
//
// Threads: not thread-safe.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}

  // Returns the next number of 64 bits.
  uint64_t Next();

  // Returns the next number in [0, bound), all equally likely. `bound` must be
  // > 0.
  uint64_t Below(uint64_t bound);

 private:
  uint64_t state_;
};

// Returns the numbers [0, n) in the order in which epoch `epoch` visits the
// examples of a set: a function of (n, seed, epoch) alone, on every machine.
// Changing it changes what a resumed job would have computed.
std::vector<int64_t> EpochShuffle(int64_t n, uint64_t seed, int64_t epoch);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_EPOCH_SHUFFLE_H_
