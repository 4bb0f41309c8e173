#include "worker/compute/cpu/max_pool.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker::cpu {
namespace {

using ::testing::ElementsAre;

constexpr PoolShape kSquare = {
    .images = 1, .height = 2, .width = 2, .channels = 1};

TEST(MaxPoolTest, PositionsCountRowsFirst) {
  for (uint8_t position = 0; position < 4; ++position) {
    std::vector<float> in(4, -1);
    in[position] = 5;
    std::vector<float> out(1);
    std::vector<uint8_t> argmax(1, 9);

    MaxPool2x2(kSquare, in.data(), out.data(), argmax.data());

    EXPECT_THAT(out, ElementsAre(5));
    EXPECT_THAT(argmax, ElementsAre(position));
  }
}

TEST(MaxPoolTest, ChannelsChooseForThemselves) {
  const PoolShape shape = {.images = 1, .height = 1, .width = 2, .channels = 2};
  const std::vector<float> in = {1, 4, 3, 2};
  std::vector<float> out(2);
  std::vector<uint8_t> argmax(2);

  MaxPool2x2(shape, in.data(), out.data(), argmax.data());

  EXPECT_THAT(out, ElementsAre(3, 4));
  EXPECT_THAT(argmax, ElementsAre(1, 0));
}

TEST(MaxPoolTest, WindowsEndWithTheImage) {
  const PoolShape shape = {.images = 1, .height = 3, .width = 1, .channels = 1};
  const std::vector<float> in = {-3, -2, -1};
  std::vector<float> out(2);
  std::vector<uint8_t> argmax(2);

  MaxPool2x2(shape, in.data(), out.data(), argmax.data());

  EXPECT_THAT(out, ElementsAre(-2, -1));
  EXPECT_THAT(argmax, ElementsAre(2, 0));
}

TEST(MaxPoolTest, NaNIsTheLargest) {
  for (int position = 0; position < 4; ++position) {
    std::vector<float> in(4, 1);
    in[position] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> out(1);
    std::vector<uint8_t> argmax(1);

    MaxPool2x2(kSquare, in.data(), out.data(), argmax.data());

    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_THAT(argmax, ElementsAre(position));
  }
}

TEST(MaxPoolTest, GradientGoesToTheLargest) {
  const std::vector<uint8_t> argmax = {2};
  const std::vector<double> out_gradient = {7};
  std::vector<double> in_gradient(4, 9);

  MaxPool2x2Gradient(kSquare, argmax.data(), out_gradient.data(),
                     in_gradient.data());

  EXPECT_THAT(in_gradient, ElementsAre(0, 0, 7, 0));
}

TEST(MaxPoolTest, PositionOutsideTheWindowPassesNothingOn) {
  const PoolShape shape = {.images = 1, .height = 1, .width = 1, .channels = 1};
  const std::vector<uint8_t> argmax = {255};
  const std::vector<float> out_gradient = {7};
  std::vector<float> in_gradient = {9};

  MaxPool2x2Gradient(shape, argmax.data(), out_gradient.data(),
                     in_gradient.data());

  EXPECT_THAT(in_gradient, ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::worker::cpu
