#include "common/collective/arithmetic.h"

#include <cstring>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

template <typename T>
std::byte* Bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

template <typename T>
std::vector<T> Sum(ElementType type, std::vector<std::vector<T>> terms,
                   double divisor) {
  std::vector<const std::byte*> places;
  for (std::vector<T>& term : terms) places.push_back(Bytes(term));
  std::vector<T> sum(terms[0].size());
  SumInOrder(type, sum.size(), places, divisor, Bytes(sum));
  // In the place of the first term, too.
  SumInOrder(type, sum.size(), places, divisor, Bytes(terms[0]));
  EXPECT_EQ(std::memcmp(sum.data(), terms[0].data(), sum.size() * sizeof(T)),
            0);
  return sum;
}

TEST(ArithmeticTest, TermsAreAddedFromTheFirstOn) {
  const std::vector<float> large(5000, 0x1p24f), one(5000, 1);
  EXPECT_THAT(Sum<float>(ElementType::kFloat32, {large, one, one}, 1),
              Each(0x1p24f));
  EXPECT_THAT(Sum<float>(ElementType::kFloat32, {one, one, large}, 1),
              Each(0x1p24f + 2));
}

TEST(ArithmeticTest, TheMeanIsDividedOnce) {
  EXPECT_THAT(Sum<double>(ElementType::kFloat64, {{1}, {1}, {2}}, 3),
              ElementsAre(4.0 / 3));
  EXPECT_THAT(Sum<int32_t>(ElementType::kInt32, {{1}, {1}, {2}}, 1),
              ElementsAre(4));
}

template <typename T>
void ExpectSum(ElementType type) {
  EXPECT_THAT(Sum<T>(type, {{1}, {2}, {4}}, 1), ElementsAre(7));
}

TEST(ArithmeticTest, EveryIntegerIsAddedInItsType) {
  ExpectSum<int8_t>(ElementType::kInt8);
  ExpectSum<uint8_t>(ElementType::kUint8);
  ExpectSum<int16_t>(ElementType::kInt16);
  ExpectSum<uint16_t>(ElementType::kUint16);
  ExpectSum<int32_t>(ElementType::kInt32);
  ExpectSum<uint32_t>(ElementType::kUint32);
  ExpectSum<int64_t>(ElementType::kInt64);
  ExpectSum<uint64_t>(ElementType::kUint64);
  EXPECT_THAT(Sum<uint8_t>(ElementType::kUint8, {{200}, {100}}, 1),
              ElementsAre(44));
}

TEST(ArithmeticTest, SubnormalNumbersAreZeros) {
  EXPECT_THAT(Sum<float>(ElementType::kFloat32, {{1e-39f}, {1e-39f}}, 1),
              ElementsAre(0));
}

TEST(ArithmeticTest, EachSumOfHalvesIsRounded) {
  const Float16 large = ToFloat16(2048.0f), one = ToFloat16(1.0f);
  const std::vector<Float16> sum =
      Sum<Float16>(ElementType::kFloat16, {{large}, {one}, {one}}, 1);
  EXPECT_EQ(ToFloat(sum[0]), 2048.0f);
}

// 300 elements: more than one block.
TEST(ArithmeticTest, BFloat16IsRoundedAtTheEndAlone) {
  const std::vector<BFloat16> large(300, ToBFloat16(256.f)),
      one(300, ToBFloat16(1.f));
  const std::vector<BFloat16> sum =
      Sum<BFloat16>(ElementType::kBFloat16, {large, one, one}, 1);
  for (const BFloat16& each : sum) EXPECT_EQ(ToFloat(each), 258.0f);
}

TEST(ArithmeticTest, CombineAndDivideInEveryType) {
  std::vector<float> floats = {6, 8}, others = {2, 3};
  Combine(ElementType::kFloat32, Arithmetic::kSubtract, 2, Bytes(floats),
          Bytes(others));
  DivideAll(ElementType::kFloat32, 2, Bytes(floats), 2);
  EXPECT_THAT(floats, ElementsAre(2, 2.5f));
  std::vector<BFloat16> halves = {ToBFloat16(3.f)}, twos = {ToBFloat16(2.f)};
  Combine(ElementType::kBFloat16, Arithmetic::kMultiply, 1, Bytes(halves),
          Bytes(twos));
  DivideAll(ElementType::kBFloat16, 1, Bytes(halves), 4);
  EXPECT_EQ(ToFloat(halves[0]), 1.5f);
}

// TensorFlow casts the number of elements along an axis to their type.
TEST(ArithmeticTest, DivisorsAreRoundedToTheTypeOfTheElements) {
  std::vector<BFloat16> brains = {ToBFloat16(14.f)};
  DivideAll(ElementType::kBFloat16, 1, Bytes(brains), 257);
  EXPECT_EQ(ToFloat(brains[0]), 14.0f / 256);
  std::vector<Float16> halves = {ToFloat16(1024.0)};
  DivideAll(ElementType::kFloat16, 1, Bytes(halves), 2049);
  EXPECT_EQ(ToFloat(halves[0]), 0.5f);
}

}  // namespace
}  // namespace lockstep
