#include "common/numeric/bfloat16.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "common/numeric/denormals.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr uint32_t kAll = 0x10000;  // number of bfloat16 values

// Input and output are at odd addresses.
std::vector<uint16_t> Round(const std::vector<uint32_t>& floats) {
  const size_t count = floats.size();
  std::vector<std::byte> from(4 * count + 1);
  std::vector<std::byte> to(2 * count + 1);
  if (count > 0) std::memcpy(from.data() + 1, floats.data(), 4 * count);
  RoundToBFloat16(count, from.data() + 1, to.data() + 1);
  std::vector<uint16_t> rounded(count);
  if (count > 0) std::memcpy(rounded.data(), to.data() + 1, 2 * count);
  return rounded;
}

uint16_t RoundOne(float value) {
  return Round({std::bit_cast<uint32_t>(value)})[0];
}

std::vector<float> Expand(const std::vector<uint16_t>& packed) {
  std::vector<std::byte> from(2 * packed.size() + 1);
  std::memcpy(from.data() + 1, packed.data(), 2 * packed.size());
  std::vector<float> floats(packed.size());
  ExpandBFloat16(packed.size(), from.data() + 1, floats.data());
  return floats;
}

std::vector<uint16_t> AllPacked() {
  std::vector<uint16_t> all(kAll);
  for (uint32_t bits = 0; bits < kAll; ++bits) {
    all[bits] = static_cast<uint16_t>(bits);
  }
  return all;
}

bool IsNan(uint32_t packed) { return (packed & 0x7fffu) > 0x7f80u; }

TEST(BFloat16Test, EveryOneIsTheUpperHalfOfItsFloat) {
  const std::vector<float> floats = Expand(AllPacked());

  for (uint32_t bits = 0; bits < kAll; ++bits) {
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[bits]), bits << 16);
  }
}

TEST(BFloat16Test, KnownValues) {
  EXPECT_EQ(Expand({0x3f80, 0xc020, 0x7f80, 0x8000}),
            (std::vector<float>{1.0f, -2.5f, HUGE_VALF, -0.0f}));
  EXPECT_EQ(RoundOne(1.0f), 0x3f80);
  EXPECT_EQ(RoundOne(3.14159265f), 0x4049);
  EXPECT_EQ(RoundOne(-0.0f), 0x8000);
}

TEST(BFloat16Test, EveryOneComesBackFromItsFloat) {
  std::vector<uint32_t> floats;
  for (uint32_t bits = 0; bits < kAll; ++bits) floats.push_back(bits << 16);

  const std::vector<uint16_t> rounded = Round(floats);

  for (uint32_t bits = 0; bits < kAll; ++bits) {
    // A NaN becomes a quiet one.
    ASSERT_EQ(rounded[bits], IsNan(bits) ? bits | 0x40u : bits);
  }
}

// Between each bfloat16 and the one of the next larger magnitude: the nearer
// one is expected, in the middle the even one, after the largest infinity.
TEST(BFloat16Test, RoundsToNearestAndTiesToEven) {
  for (const uint32_t low : {0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    std::vector<uint32_t> floats;
    for (uint32_t bits = 0; bits < kAll; ++bits) {
      floats.push_back(bits << 16 | low);
    }

    const std::vector<uint16_t> rounded = Round(floats);

    for (uint32_t bits = 0; bits < kAll; ++bits) {
      if ((bits & 0x7fffu) >= 0x7f80u) continue;  // they are NaN
      const bool up = low == 0x8000 ? bits % 2 == 1 : low > 0x8000;
      ASSERT_EQ(rounded[bits], up ? bits + 1 : bits) << low;
    }
  }
}

TEST(BFloat16Test, NaNStaysNaNOfItsSignWhateverItsFraction) {
  for (const uint32_t fraction :
       {0x1u, 0x7fffu, 0xffffu, 0x10000u, 0x400000u, 0x7f7fffu, 0x7fffffu}) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const uint16_t rounded = Round({sign | 0x7f800000u | fraction})[0];

      EXPECT_TRUE(IsNan(rounded)) << fraction;
      EXPECT_EQ(rounded >> 15, sign >> 31) << fraction;
    }
  }
}

TEST(BFloat16Test, TooLargeBecomesInfinity) {
  EXPECT_EQ(RoundOne(HUGE_VALF), 0x7f80);
  EXPECT_EQ(RoundOne(-HUGE_VALF), 0xff80);
  EXPECT_EQ(RoundOne(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(RoundOne(0x1.fefffep127f), 0x7f7f);
}

TEST(BFloat16Test, SubnormalsAreRoundedWhereTheyAreFlushedToo) {
  const std::vector<uint32_t> subnormals = {0x00000001, 0x00008001, 0x007f8000,
                                            0x807fffff};
  const std::vector<uint16_t> expected = {0x0000, 0x0001, 0x0080, 0x8080};
  ScopedFlushDenormals flush;

  EXPECT_EQ(Round(subnormals), expected);
  EXPECT_EQ(std::bit_cast<uint32_t>(Expand({0x0001})[0]), 0x00010000u);
}

TEST(BFloat16Test, AnyCountIsConvertedAndNothingBeyond) {
  for (size_t count = 0; count < 70; ++count) {
    const std::vector<float> ones(count + 1, 1.0f);
    std::vector<uint16_t> packed(count + 1, 0x1234);
    RoundToBFloat16(count, reinterpret_cast<const std::byte*>(ones.data()),
                    reinterpret_cast<std::byte*>(packed.data()));
    std::vector<float> floats(count + 1, 7.0f);
    ExpandBFloat16(count, reinterpret_cast<const std::byte*>(packed.data()),
                   floats.data());

    std::vector<float> expected(count, 1.0f);
    expected.push_back(7.0f);
    EXPECT_EQ(floats, expected);
    EXPECT_EQ(packed[count], 0x1234);
  }
}

TEST(BFloat16Test, RoundedInPlaceIsWhatComesOverTheWire) {
  std::vector<uint32_t> floats;
  for (uint32_t bits = 0; bits < kAll; ++bits) {
    floats.push_back(bits << 16 | (bits * 40503u & 0xffffu));
  }
  const std::vector<float> sent = Expand(Round(floats));
  std::vector<std::byte> memory(4 * kAll + 1);
  std::memcpy(memory.data() + 1, floats.data(), 4 * kAll);

  RoundToBFloat16InPlace(kAll, memory.data() + 1);

  EXPECT_EQ(std::memcmp(memory.data() + 1, sent.data(), 4 * kAll), 0);
}

TEST(BFloat16Test, DoubleIsRoundedOnce) {
  EXPECT_EQ(ToBFloat16(1 + 0x1p-8).bits, 0x3f80);  // a tie, to even
  // The nearest float32 is the tie.
  EXPECT_EQ(ToBFloat16(1 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(ToBFloat16(-(1 + 0x1p-8 + 0x1p-40)).bits, 0xbf81);
  EXPECT_EQ(ToBFloat16(1 + 0x1.8p-7 - 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(ToBFloat16(0x1p-126 + 0x1p-134 + 0x1p-160).bits, 0x0081);
  EXPECT_EQ(ToBFloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(ToBFloat16(-1e-300).bits, 0x8000);
  EXPECT_TRUE(IsNan(ToBFloat16(std::nan("")).bits));
}

TEST(BFloat16Test, OneIsRoundedAsManyAre) {
  EXPECT_EQ(ToBFloat16(1.00390625f).bits, 0x3f80);  // a tie, to even
  EXPECT_EQ(ToBFloat16(1.01171875f).bits, 0x3f82);
  EXPECT_EQ(ToFloat(ToBFloat16(-3.0f)), -3);
}

}  // namespace
}  // namespace lockstep
