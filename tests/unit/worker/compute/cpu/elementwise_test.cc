#include "worker/compute/cpu/elementwise.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cpu {
namespace {

using ::testing::ElementsAre;

TEST(ElementwiseTest, AddBiasAddsToEachRow) {
  const std::vector<float> bias = {10, 20, 30};
  std::vector<float> values = {1, 2, 3, 4, 5, 6};

  AddBias(2, 3, bias.data(), values.data());

  EXPECT_THAT(values, ElementsAre(11, 22, 33, 14, 25, 36));
}

TEST(ElementwiseTest, BiasGradientSumsRows) {
  const std::vector<float> gradient = {1, 2, 3, 4, 5, 6};
  std::vector<float> sums = {9, 9, 9};

  BiasGradient(2, 3, gradient.data(), sums.data());

  EXPECT_THAT(sums, ElementsAre(5, 7, 9));
}

TEST(ElementwiseTest, BiasGradientOfNoRowsIsZero) {
  std::vector<double> sums = {9};

  BiasGradient<double>(0, 1, nullptr, sums.data());

  EXPECT_THAT(sums, ElementsAre(0));
}

TEST(ElementwiseTest, ReluCutsOffNegativesAndKeepsNaN) {
  const std::vector<float> in = {-1, 0, 2,
                                 std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> out(4);

  Relu(4, in.data(), out.data());

  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[2], 2);
  EXPECT_TRUE(std::isnan(out[3]));
}

TEST(ElementwiseTest, ReluGradientPassesWhereOutputIsPositive) {
  const std::vector<double> out = {0, 3, 0, 1};
  const std::vector<double> out_gradient = {5, -6, 7, 8};
  std::vector<double> in_gradient(4);

  ReluGradient(4, out.data(), out_gradient.data(), in_gradient.data());

  EXPECT_THAT(in_gradient, ElementsAre(0, -6, 0, 8));
}

TEST(ElementwiseTest, NothingIsTouchedWhereThereIsNothing) {
  Relu<float>(0, nullptr, nullptr);
  ReluGradient<float>(0, nullptr, nullptr, nullptr);
  AddBias<float>(0, 0, nullptr, nullptr);
}

}  // namespace
}  // namespace lockstep::cpu
