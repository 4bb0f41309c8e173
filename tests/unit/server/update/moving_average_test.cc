#include "server/update/moving_average.h"

#include <vector>

#include "common/numeric/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Span<std::byte> Bytes(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

TEST(MovingAverageTest, FactorIsTakenInFloat32) {
  EXPECT_EQ(AverageFactor(0.9, std::nullopt), 1.0f - 0.9f);
  EXPECT_NE(AverageFactor(0.9, std::nullopt), static_cast<float>(1.0 - 0.9));
}

TEST(MovingAverageTest, YoungAveragesMoveFast) {
  EXPECT_FLOAT_EQ(AverageFactor(0.25, 1), 1 - 2.0f / 11);
  EXPECT_EQ(AverageFactor(0.25, 1000), 0.75f);
}

TEST(MovingAverageTest, AverageGoesTowardsTheValue) {
  std::vector<float> value = {1, 2};
  std::vector<float> average = {10, 11};
  ASSERT_OK(
      UpdateAverage(DType::kFloat32, 0.75f, Bytes(value), Bytes(average)));
  EXPECT_THAT(average, ElementsAre(3.25f, 4.25f));
}

TEST(MovingAverageTest, BFloat16IsRoundedOnce) {
  std::vector<BFloat16> value = {ToBFloat16(1.f), ToBFloat16(2.f)};
  std::vector<BFloat16> average = {ToBFloat16(10.f), ToBFloat16(11.f)};
  const auto bytes = [](std::vector<BFloat16>& of) {
    return absl::Span<std::byte>(reinterpret_cast<std::byte*>(of.data()),
                                 of.size() * sizeof(BFloat16));
  };
  ASSERT_OK(
      UpdateAverage(DType::kBFloat16, 0.75f, bytes(value), bytes(average)));
  EXPECT_EQ(ToFloat(average[0]), 3.25f);
  EXPECT_EQ(ToFloat(average[1]), 4.25f);
}

TEST(MovingAverageTest, LengthsThatDifferAreRefused) {
  std::vector<float> one = {1};
  std::vector<float> two = {1, 2};
  EXPECT_THAT(UpdateAverage(DType::kFloat32, 0.5f, Bytes(one), Bytes(two)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("have 4 and 8 bytes")));
  EXPECT_THAT(UpdateAverage(DType::kFloat64, 0.5f, Bytes(one), Bytes(one)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(one, ElementsAre(1));
  EXPECT_THAT(two, ElementsAre(1, 2));
}

}  // namespace
}  // namespace lockstep::server
