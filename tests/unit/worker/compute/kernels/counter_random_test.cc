#include "worker/compute/kernels/counter_random.h"

#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace lockstep::worker::kernels {
namespace {

// The first numbers of SplitMix64 with seed 0, as its authors publish them.
TEST(CounterRandomTest, MixIsSplitMix64) {
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafU);
  EXPECT_EQ(Mix(0x9e3779b97f4a7c15U), 0x6e789e6aa1b965f4U);
}

TEST(CounterRandomTest, BitsFollowFromKeyAndCounterAlone) {
  EXPECT_EQ(RandomBits(5, 7), RandomBits(5, 7));
  EXPECT_NE(RandomBits(5, 7), RandomBits(5, 8));
  EXPECT_NE(RandomBits(5, 7), RandomBits(6, 7));
  EXPECT_NE(RandomBits(5, 7), RandomBits(7, 5));
}

TEST(CounterRandomTest, BitsAreEvenlySpread) {
  constexpr int kDraws = 10'000;
  std::set<uint32_t> seen;
  int64_t below = 0;
  int bits = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const uint32_t drawn = RandomBits(1, i);
    seen.insert(drawn);
    if (drawn < (1U << 30)) ++below;
    bits += __builtin_popcount(drawn);
  }
  EXPECT_GT(seen.size(), kDraws - 5U);
  EXPECT_NEAR(static_cast<double>(below) / kDraws, 0.25, 0.02);
  EXPECT_NEAR(static_cast<double>(bits) / kDraws, 16, 0.2);
}

}  // namespace
}  // namespace lockstep::worker::kernels
