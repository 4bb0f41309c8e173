#include "server/state/init/counter_random.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

constexpr int64_t kDraws = 20'000;

TEST(CounterRandomTest, NumberFollowsFromSeedNameAndIndexAlone) {
  const CounterRandom numbers(7, "w");
  const double fifth = numbers.Uniform(5, 0);
  numbers.Uniform(4, 1);
  EXPECT_EQ(numbers.Uniform(5, 0), fifth);
  EXPECT_EQ(CounterRandom(7, "w").Uniform(5, 0), fifth);
  EXPECT_NE(CounterRandom(8, "w").Uniform(5, 0), fifth);
  EXPECT_NE(CounterRandom(7, "v").Uniform(5, 0), fifth);
  EXPECT_NE(numbers.Uniform(5, 1), fifth);
  EXPECT_NE(numbers.Uniform(6, 0), fifth);
  EXPECT_NE(numbers.OfKey(1).Uniform(5, 0), fifth);
  EXPECT_NE(numbers.OfKey(1).Uniform(5, 0), numbers.OfKey(2).Uniform(5, 0));
}

TEST(CounterRandomTest, UniformNumbersFillTheirRange) {
  const CounterRandom numbers(7, "w");
  double sum = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const double value = numbers.Uniform(i, 0);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
}

TEST(CounterRandomTest, NormalNumbersHaveMeanZeroAndDeviationOne) {
  const CounterRandom numbers(7, "w");
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const double value = numbers.Normal(i);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.03);
  EXPECT_NEAR(squares / kDraws, 1, 0.05);
}

TEST(CounterRandomTest, TruncatedNumbersAreAtMostTwoAndElseTheSame) {
  const CounterRandom numbers(7, "w");
  int64_t drawn_again = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const double value = numbers.TruncatedNormal(i);
    ASSERT_LE(std::fabs(value), 2);
    drawn_again += value == numbers.Normal(i) ? 0 : 1;
  }
  EXPECT_NEAR(static_cast<double>(drawn_again) / kDraws, 0.0455, 0.01);
}

}  // namespace
}  // namespace lockstep::server
