#include "common/base/fingerprint.h"

#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(FingerprintTest, ValuesNeverChange) {
  EXPECT_EQ(Fingerprint().value(), 0xcbf29ce484222325u);
  EXPECT_EQ(Fingerprint().Add(uint64_t{0}).value(), 0xa8c7f832281a39c5u);
  EXPECT_EQ(Fingerprint().Add("hidden1/weights").value(), 0xbcd43c83ac5205ebu);
}

TEST(FingerprintTest, NumbersBelowABoundAreSpreadEvenly) {
  std::vector<int> counts(16);
  for (uint64_t i = 0; i < 16'000; ++i) {
    ++counts[Fingerprint().Add(i).Below(counts.size())];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(Fingerprint().Add("a").Below(1), 0u);
}

TEST(FingerprintTest, BoundariesBetweenFieldsCount) {
  EXPECT_NE(Fingerprint().Add("ab").Add("c").value(),
            Fingerprint().Add("a").Add("bc").value());
}

TEST(FingerprintTest, OrderCounts) {
  EXPECT_NE(Fingerprint().Add(uint64_t{1}).Add(uint64_t{2}).value(),
            Fingerprint().Add(uint64_t{2}).Add(uint64_t{1}).value());
}

TEST(MixBitsTest, ValuesAreThoseOfSplitMix64) {
  // The first two numbers of the generator from state 0.
  EXPECT_EQ(MixBits(kGoldenRatio), 0xe220a8397b1dcdaf);
  EXPECT_EQ(MixBits(2 * kGoldenRatio), 0x6e789e6aa1b965f4);
}

}  // namespace
}  // namespace lockstep
