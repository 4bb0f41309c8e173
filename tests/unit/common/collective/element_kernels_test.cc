#include "common/collective/element_kernels.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<T> Combined(Arithmetic op, std::vector<T> a,
                        const std::vector<T>& b) {
  CombineKernel<T>(op, a.size(), reinterpret_cast<std::byte*>(a.data()),
                   reinterpret_cast<const std::byte*>(b.data()));
  return a;
}

TEST(ElementKernelsTest, EveryOperationOfEveryType) {
  EXPECT_THAT(Combined<float>(Arithmetic::kAdd, {1, 2}, {3, 4}),
              ElementsAre(4, 6));
  EXPECT_THAT(Combined<double>(Arithmetic::kSubtract, {1, 2}, {3, 5}),
              ElementsAre(-2, -3));
  EXPECT_THAT(Combined<int32_t>(Arithmetic::kMultiply, {3, -2}, {3, 5}),
              ElementsAre(9, -10));
  EXPECT_THAT(Combined<int64_t>(Arithmetic::kDivide, {7, -7}, {2, 2}),
              ElementsAre(3, -3));
}

TEST(ElementKernelsTest, IntegersWrapAroundAndDivideByAnything) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(Combined<int32_t>(Arithmetic::kAdd, {kMax}, {1}),
              ElementsAre(kMin));
  EXPECT_THAT(Combined<int32_t>(Arithmetic::kDivide, {kMin, 5}, {-1, 0}),
              ElementsAre(kMin, 0));
}

TEST(ElementKernelsTest, SmallIntegersWrapAroundInTheirOwnWidth) {
  EXPECT_THAT(Combined<uint8_t>(Arithmetic::kAdd, {200, 1}, {100, 2}),
              ElementsAre(44, 3));
  EXPECT_THAT(Combined<int8_t>(Arithmetic::kAdd, {127}, {1}),
              ElementsAre(-128));
  EXPECT_THAT(Combined<int16_t>(Arithmetic::kSubtract, {-32768}, {1}),
              ElementsAre(32767));
  // As int the product would overflow.
  EXPECT_THAT(Combined<uint16_t>(Arithmetic::kMultiply, {65535}, {65535}),
              ElementsAre(1));
  EXPECT_THAT(Combined<uint32_t>(Arithmetic::kSubtract, {0}, {1}),
              ElementsAre(4294967295u));
  EXPECT_THAT(
      Combined<uint64_t>(Arithmetic::kDivide, {18446744073709551615u, 7},
                         {18446744073709551615u, 0}),
      ElementsAre(1, 0));
  EXPECT_THAT(Combined<int8_t>(Arithmetic::kDivide, {-128, -7}, {-1, 2}),
              ElementsAre(-128, -3));
}

TEST(ElementKernelsTest, EachQuotientIsRoundedOnce) {
  std::vector<float> values = {1, 10};
  DivideAllKernel<float>(2, reinterpret_cast<std::byte*>(values.data()), 3);
  EXPECT_THAT(values, ElementsAre(1.0f / 3, 10.0f / 3));
}

}  // namespace
}  // namespace lockstep
