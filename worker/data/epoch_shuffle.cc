#include "worker/data/epoch_shuffle.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/fingerprint.h"

namespace lockstep::worker {

uint64_t SplitMix64::Next() {
  state_ += kGoldenRatio;
  return MixBits(state_);
}

// Draws again if the number is in the last, incomplete run of `bound` numbers,
// which would make small results likelier than large ones.
uint64_t SplitMix64::Below(uint64_t bound) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const uint64_t limit = kMax - kMax % bound;
  uint64_t number = Next();
  while (number >= limit) number = Next();
  return number % bound;
}

// The seed is mixed before the epoch is added, so that (seed, epoch + 1) and
// (seed + 1, epoch) give unrelated orders. The shuffle is Fisher and Yates's.
std::vector<int64_t> EpochShuffle(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(order.begin(), order.end(), int64_t{0});
  SplitMix64 random(SplitMix64(seed).Next() + static_cast<uint64_t>(epoch));
  SplitMix64 stream(random.Next());
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[stream.Below(i)]);
  }
  return order;
}

}  // namespace lockstep::worker
