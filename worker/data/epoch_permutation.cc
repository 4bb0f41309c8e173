#include "worker/data/epoch_permutation.h"

#include "common/base/fingerprint.h"
#include "worker/data/epoch_shuffle.h"

namespace lockstep::worker {

// The seed is mixed before the epoch is added, as in EpochShuffle().
EpochPermutation::EpochPermutation(int64_t n, uint64_t seed, int64_t epoch)
    : n_(static_cast<uint64_t>(n)) {
  while (half_ < 32 && uint64_t{1} << (2 * half_) < n_) ++half_;
  SplitMix64 random(SplitMix64(seed).Next() + static_cast<uint64_t>(epoch));
  for (uint64_t& key : keys_) key = random.Next();
}

int64_t EpochPermutation::At(int64_t place) const {
  // A number outside of [0, n) leads on, along a cycle of the permutation, to
  // one inside: different places to different numbers.
  uint64_t number = Mix(static_cast<uint64_t>(place));
  while (number >= n_) number = Mix(number);
  return static_cast<int64_t>(number);
}

// A network of Feistel: each round can be undone, whatever its function is.
uint64_t EpochPermutation::Mix(uint64_t number) const {
  const uint64_t mask = (uint64_t{1} << half_) - 1;
  uint64_t left = number >> half_;
  uint64_t right = number & mask;
  for (const uint64_t key : keys_) {
    const uint64_t next = left ^ (MixBits(right + key) & mask);
    left = right;
    right = next;
  }
  return left << half_ | right;
}

}  // namespace lockstep::worker
