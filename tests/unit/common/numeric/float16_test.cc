#include "common/numeric/float16.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr uint16_t kInfinity = 0x7c00;
constexpr float kInf = std::numeric_limits<float>::infinity();

// Returns the value of a finite half, by the definition of the format.
double Meaning(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -24)
                               : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Float16Test, EveryFiniteHalfIsConvertedExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    const Float16 half{static_cast<uint16_t>(bits)};
    ASSERT_EQ(ToFloat(half), Meaning(half.bits)) << bits;
    ASSERT_EQ(ToFloat16(ToFloat(half)).bits, bits);
  }
}

TEST(Float16Test, InfinitiesAndNotANumberStayWhatTheyAre) {
  EXPECT_EQ(ToFloat(Float16{kInfinity}), kInf);
  EXPECT_EQ(ToFloat(Float16{0xfc00}), -kInf);
  EXPECT_EQ(ToFloat16(kInf).bits, kInfinity);
  EXPECT_EQ(ToFloat16(-kInf).bits, 0xfc00);
  for (uint16_t bits : {0x7c01, 0x7e00, 0x7fff, 0xfc01, 0xffff}) {
    EXPECT_TRUE(std::isnan(ToFloat(Float16{bits}))) << bits;
    const uint16_t back = ToFloat16(ToFloat(Float16{bits})).bits;
    EXPECT_TRUE(std::isnan(ToFloat(Float16{back}))) << bits;
    EXPECT_EQ(back & 0x8000, bits & 0x8000);
  }
}

TEST(Float16Test, HalfWayBetweenTwoHalvesGoesToTheEvenOne) {
  for (uint16_t bits = 0; bits < kInfinity - 1; ++bits) {
    const uint16_t next = bits + 1;
    const auto middle = static_cast<float>((Meaning(bits) + Meaning(next)) / 2);
    const uint16_t even = bits % 2 == 0 ? bits : next;

    ASSERT_EQ(ToFloat16(middle).bits, even);
    ASSERT_EQ(ToFloat16(-middle).bits, even | 0x8000);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, kInf)).bits, next);
  }
}

// A double close to the middle of two halves becomes a float in the middle.
TEST(Float16Test, DoubleIsRoundedOnce) {
  for (uint16_t bits = 1; bits < kInfinity - 1; ++bits) {
    const double middle = (Meaning(bits) + Meaning(bits + 1)) / 2;
    ASSERT_EQ(ToFloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0)).bits, bits);
    ASSERT_EQ(ToFloat16(-std::nextafter(middle, 1e9)).bits,
              (bits + 1) | 0x8000);
  }
  EXPECT_EQ(ToFloat16(1e300).bits, kInfinity);
  EXPECT_TRUE(std::isnan(ToFloat(ToFloat16(std::nan("")))));
}

TEST(Float16Test, ArithmeticRoundsToHalf) {
  const Float16 a = ToFloat16(2048.0f);
  const Float16 one = ToFloat16(1.0f);
  EXPECT_EQ(ToFloat(a + one), 2048.0f);
  EXPECT_EQ(ToFloat(a - one), 2047.0f);
  EXPECT_EQ(ToFloat(one / ToFloat16(3.0f)), 0.333251953125f);
  EXPECT_EQ(ToFloat(-a * a), -kInf);
  EXPECT_TRUE(ToFloat16(0.0f) == ToFloat16(-0.0f));
  EXPECT_TRUE(-a < one);
  EXPECT_TRUE(a > one);
}

TEST(Float16Test, TooLargeBecomesInfinity) {
  EXPECT_EQ(ToFloat16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(ToFloat16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f).bits, kInfinity);
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::max()).bits, kInfinity);
}

TEST(Float16Test, TooSmallBecomesAZeroOfItsSign) {
  EXPECT_EQ(ToFloat16(std::ldexp(1.0f, -25)).bits, 0x0000);
  EXPECT_EQ(ToFloat16(-std::ldexp(1.0f, -25)).bits, 0x8000);
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_EQ(ToFloat16(-0.0f).bits, 0x8000);
}

}  // namespace
}  // namespace lockstep
