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
  EXPECT_EQ(AverageFactorOfFunction(0.9), 0.1f);
  EXPECT_NE(AverageFactor(0.9, std::nullopt), AverageFactorOfFunction(0.9));
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
  std::vector<BFloat16> step = {ToBFloat16(0.f)};
  EXPECT_THAT(
      UpdateDebiasedAverage(DType::kBFloat16, 0.5f, bytes(value),
                            {bytes(average), bytes(step), bytes(average)}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not bfloat16")));
  EXPECT_EQ(ToFloat(average[0]), 3.25f);
}

TEST(MovingAverageTest, DebiasedAverageForgetsItsStart) {
  std::vector<float> value = {1, 2};
  std::vector<float> biased = {0, 0};
  std::vector<float> step = {0};
  std::vector<float> average = {0, 0};
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(
        UpdateDebiasedAverage(DType::kFloat32, 0.75f, Bytes(value),
                              {Bytes(biased), Bytes(step), Bytes(average)}));
    EXPECT_THAT(average, ElementsAre(1, 2));
  }
  EXPECT_THAT(step, ElementsAre(3));
}

TEST(MovingAverageTest, DebiasedAverageWeighsEveryValue) {
  std::vector<float> value = {1, 2};
  std::vector<float> biased = {0, 0};
  std::vector<float> step = {0};
  std::vector<float> average = {0, 0};
  const DebiasedAverage state = {Bytes(biased), Bytes(step), Bytes(average)};
  ASSERT_OK(UpdateDebiasedAverage(DType::kFloat32, 0.75f, Bytes(value), state));
  value = {3, -2};
  ASSERT_OK(UpdateDebiasedAverage(DType::kFloat32, 0.75f, Bytes(value), state));
  EXPECT_THAT(biased, ElementsAre(2.4375f, -1.125f));
  // Over 1 - (1/4)^2.
  EXPECT_FLOAT_EQ(average[0], 2.6f);
  EXPECT_FLOAT_EQ(average[1], -1.2f);
}

TEST(MovingAverageTest, LengthsThatDifferAreRefused) {
  std::vector<float> one = {1};
  std::vector<float> two = {1, 2};
  EXPECT_THAT(UpdateAverage(DType::kFloat32, 0.5f, Bytes(one), Bytes(two)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(UpdateDebiasedAverage(DType::kFloat32, 0.5f, Bytes(two),
                                    {Bytes(two), Bytes(two), Bytes(two)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("local_step must be one")));
  // The biased sum is checked before the step is counted.
  std::vector<float> step = {4};
  EXPECT_THAT(UpdateDebiasedAverage(DType::kFloat32, 0.5f, Bytes(two),
                                    {Bytes(one), Bytes(step), Bytes(two)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("have 8 and 4 bytes")));
  EXPECT_THAT(UpdateAverage(DType::kFloat64, 0.5f, Bytes(one), Bytes(one)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(one, ElementsAre(1));
  EXPECT_THAT(two, ElementsAre(1, 2));
  EXPECT_THAT(step, ElementsAre(4));
}

}  // namespace
}  // namespace lockstep::server
