#include "server/step/element_math.h"

#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::BytesOf;
using ::lockstep::testing::Decode;
using ::lockstep::testing::ElementsOf;
using ::lockstep::testing::Encode;
using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> Sum(DType dtype, const std::vector<double>& a,
                        const std::vector<double>& b) {
  const FlushSubnormals mode;
  std::vector<std::byte> sum = Encode(dtype, a);
  AddElements(mode, dtype, a.size(), Encode(dtype, b).data(), sum.data());
  return Decode(dtype, sum);
}

std::vector<double> Quotient(DType dtype, const std::vector<double>& a,
                             int64_t divisor) {
  const FlushSubnormals mode;
  std::vector<std::byte> values = Encode(dtype, a);
  DivideElements(mode, dtype, a.size(), divisor, values.data());
  return Decode(dtype, values);
}

TEST(ElementMathTest, EveryTypeRoundsToItself) {
  EXPECT_THAT(Sum(DType::kFloat16, {2048, 1}, {1, 2}), ElementsAre(2048, 3));
  EXPECT_THAT(Sum(DType::kFloat32, {16777216, 1}, {1, 2}),
              ElementsAre(16777216, 3));
  EXPECT_THAT(Sum(DType::kFloat64, {16777216, 1}, {1, 2}),
              ElementsAre(16777217, 3));
  EXPECT_THAT(Sum(DType::kBFloat16, {256, 1}, {1, 2}), ElementsAre(256, 3));
  EXPECT_THAT(Quotient(DType::kBFloat16, {1}, 3), ElementsAre(0.333984375));
  EXPECT_THAT(Quotient(DType::kFloat16, {1, 65504}, 3),
              ElementsAre(0.333251953125, 21840));
  EXPECT_THAT(Quotient(DType::kFloat32, {1}, 3), ElementsAre(1.0f / 3.0f));
  EXPECT_THAT(Quotient(DType::kFloat64, {1}, 3), ElementsAre(1.0 / 3.0));
}

TEST(ElementMathTest, HalfOverflowsToInfinity) {
  EXPECT_THAT(Sum(DType::kFloat16, {65504}, {65504}), ElementsAre(kInf));
}

TEST(ElementMathTest, HalfRoundsTheDivisorToo) {
  // 2049 becomes 2048 and 70000 infinity.
  EXPECT_THAT(Quotient(DType::kFloat16, {2048}, 2049), ElementsAre(1));
  EXPECT_THAT(Quotient(DType::kFloat16, {2048}, 70000), ElementsAre(0));
}

TEST(ElementMathTest, HalfKeepsItsSubnormals) {
  const double tiny = std::ldexp(1, -24);
  EXPECT_THAT(Sum(DType::kFloat16, {tiny}, {tiny}), ElementsAre(2 * tiny));
  EXPECT_THAT(Quotient(DType::kFloat16, {4 * tiny}, 4), ElementsAre(tiny));
}

TEST(ElementMathTest, FloatAndDoubleFlushSubnormals) {
  const double kFloatMin = std::numeric_limits<float>::min();
  const double kDoubleMin = std::numeric_limits<double>::min();
  EXPECT_THAT(Sum(DType::kFloat32, {kFloatMin / 2, kFloatMin * 1.5},
                  {kFloatMin, -kFloatMin}),
              ElementsAre(kFloatMin, 0));
  EXPECT_THAT(Sum(DType::kFloat64, {kDoubleMin / 2, kDoubleMin * 1.5},
                  {kDoubleMin, -kDoubleMin}),
              ElementsAre(kDoubleMin, 0));
  EXPECT_THAT(Quotient(DType::kFloat32, {kFloatMin}, 2), ElementsAre(0));
  EXPECT_THAT(Quotient(DType::kFloat64, {kDoubleMin}, 2), ElementsAre(0));
}

// Whole blocks, left-over elements and unaligned memory.
TEST(ElementMathTest, EveryLengthAndAlignmentGivesTheSame) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-10, 10);
  for (size_t count : {0, 1, 31, 32, 33, 64, 1000}) {
    std::vector<float> a(count), b(count), sum(count), mean(count);
    for (size_t i = 0; i < count; ++i) {
      a[i] = uniform(random);
      b[i] = uniform(random);
      sum[i] = a[i] + b[i];
      mean[i] = sum[i] / 7.0f;
    }
    std::vector<std::byte> addend(1);
    for (std::byte byte : BytesOf(b)) addend.push_back(byte);
    std::vector<std::byte> values = BytesOf(a);

    const FlushSubnormals mode;
    AddElements(mode, DType::kFloat32, count, addend.data() + 1, values.data());
    EXPECT_EQ(ElementsOf<float>(values), sum);
    DivideElements(mode, DType::kFloat32, count, 7, values.data());
    EXPECT_EQ(ElementsOf<float>(values), mean);
  }
}

}  // namespace
}  // namespace lockstep::server
