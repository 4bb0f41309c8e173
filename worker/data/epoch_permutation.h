#ifndef LOCKSTEP_WORKER_DATA_EPOCH_PERMUTATION_H_
#define LOCKSTEP_WORKER_DATA_EPOCH_PERMUTATION_H_

#include <array>
#include <cstdint>

namespace lockstep::worker {

// EpochPermutation is an order of the numbers [0, n) for data sets of which no
// list of all examples fits into memory: each place is computed alone. The
// order is a function of (n, seed, epoch), on every machine, and another one
// than EpochShuffle()'s. Changing it changes what a resumed job would have
// computed.
//
// Threads: safe to share.
class EpochPermutation {
 public:
  // `n` must be > 0.
  EpochPermutation(int64_t n, uint64_t seed, int64_t epoch);

  // Returns the number at a place in [0, n).
  int64_t At(int64_t place) const;

 private:
  static constexpr int kRounds = 6;

  // A permutation of the numbers of 2 * half_ bits, which are at most 4 n.
  uint64_t Mix(uint64_t number) const;

  const uint64_t n_;
  int half_ = 1;  // bits
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_EPOCH_PERMUTATION_H_
