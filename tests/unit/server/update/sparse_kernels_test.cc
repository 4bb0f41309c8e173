#include "server/update/sparse_kernels.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

TEST(SparseKernelsTest, RowsAreAddedWhereverTheyLie) {
  const float values[] = {1, 2};
  std::vector<std::byte> odd(9);
  std::copy_n(reinterpret_cast<const std::byte*>(values), 8, odd.data() + 1);
  std::vector<float> sum = {10, 20};
  AddRow<float>(2, odd.data() + 1, sum.data());
  EXPECT_THAT(sum, ElementsAre(11, 22));
}

TEST(SparseKernelsTest, DecayTakesEveryElement) {
  std::vector<float> slot(13, 2);
  AdamDecayKernel(slot.size(), 0.5f, slot.data());
  EXPECT_EQ(slot, std::vector<float>(13, 1));
}

TEST(SparseKernelsTest, SweepMovesEveryElementByItsMoments) {
  std::vector<double> value(5, 1);
  const std::vector<double> m(5, 2);
  const std::vector<double> v(5, 9);
  AdamSweepKernel(5, {0.5, 0, 0, 1}, m.data(), v.data(), value.data());
  EXPECT_EQ(value, std::vector<double>(5, 0.75));
}

// Sparse Ftrl computes every element of a row, also one without a value.
TEST(SparseKernelsTest, FtrlOfNothingIsNotANumber) {
  float value = 0, accumulator = 0, linear = 0;
  const float gradient = 0;
  const SparseRow<float> row{1, &gradient, &value, {&accumulator, &linear}};
  FtrlRow(row, {1, -0.5f, 0, 0, 0});
  EXPECT_TRUE(std::isnan(value));
}

TEST(SparseKernelsTest, LazyAdamTakesItsFirstStepAsAdamDoes) {
  float value = 1, m = 0, v = 0;
  const float gradient = 0.1f;
  const SparseRow<float> row{1, &gradient, &value, {&m, &v}};
  LazyAdamRow(row, {0.001f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f});
  EXPECT_THAT(value, FloatEq(0.999f));
  EXPECT_THAT(m, FloatEq(0.01f));
}

}  // namespace
}  // namespace lockstep::server
