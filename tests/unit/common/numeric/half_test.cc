#include "common/numeric/half.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(HalfTest, KnownBitsHaveTheirValues) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0xc000), -2.0f);
  EXPECT_EQ(HalfToFloat(0x3555), 0.333251953125f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
}

TEST(HalfTest, SubnormalsAreExact) {
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0x03ff), std::ldexp(1023.0f, -24));
  EXPECT_EQ(HalfToFloat(0x0400), std::ldexp(1.0f, -14));
}

TEST(HalfTest, ZerosKeepTheirSign) {
  EXPECT_FALSE(std::signbit(HalfToFloat(0x0000)));
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
  EXPECT_EQ(HalfToFloat(0x8000), 0.0f);
}

TEST(HalfTest, InfinitiesAndNansStayWhatTheyAre) {
  EXPECT_EQ(HalfToFloat(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(HalfToFloat(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
  EXPECT_TRUE(std::isnan(HalfToFloat(0xfc01)));
}

TEST(HalfTest, PositiveBitsRiseWithTheirValues) {
  for (uint16_t bits = 0; bits < 0x7c00; ++bits) {
    ASSERT_LT(HalfToFloat(bits), HalfToFloat(bits + 1)) << bits;
  }
}

}  // namespace
}  // namespace lockstep
