#include "worker/compute/kernels/columns.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/worker/compute/kernels/grid.h"

namespace lockstep::worker::kernels {
namespace {

constexpr int64_t kRows = 3;
constexpr int64_t kColumns = 2;
const std::vector<double> kIn = {1, 10, 2, 30, 6, 20};

template <typename F>
std::vector<double> SumOverRows(const F& summand) {
  std::vector<double> sums(kColumns);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      sums[column] += summand(row, column);
    }
  }
  return sums;
}

TEST(ColumnsTest, ElementsAndSquaredDistancesAddUpToMeansAndVariances) {
  const std::vector<double> means =
      SumOverRows(Element<double>{kIn.data(), kColumns, 1.0 / kRows});
  EXPECT_DOUBLE_EQ(means[0], 3);
  EXPECT_DOUBLE_EQ(means[1], 20);

  const std::vector<double> variances = SumOverRows(
      SquaredDistance<double>{kIn.data(), means.data(), kColumns, 1.0 / kRows});
  EXPECT_DOUBLE_EQ(variances[0], (4 + 1 + 9) / 3.0);
  EXPECT_DOUBLE_EQ(variances[1], (100 + 100 + 0) / 3.0);
}

class BatchNormTest : public ::testing::Test {
 protected:
  // Means, then variances.
  static std::vector<double> Statistics(const std::vector<double>& in) {
    std::vector<double> statistics(2 * kColumns);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      statistics[i % kColumns] += in[i] / kRows;
    }
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const double distance = in[i] - statistics[i % kColumns];
      statistics[kColumns + i % kColumns] += distance * distance / kRows;
    }
    return statistics;
  }
  Moments<double> MomentsOf(const std::vector<double>& statistics) const {
    return {statistics.data(), kColumns, 1e-3};
  }
  std::vector<double> Out(const std::vector<double>& in) const {
    const std::vector<double> statistics = Statistics(in);
    std::vector<double> out(in.size());
    const BatchNorm<double> norm{in.data(), MomentsOf(statistics),
                                 scale_.data(), shift_.data(), out.data()};
    Grid(kRows, kColumns, norm);
    return out;
  }
  double Loss(const std::vector<double>& in) const {
    const std::vector<double> out = Out(in);
    double loss = 0;
    for (size_t i = 0; i < out.size(); ++i) loss += out[i] * gradient_[i];
    return loss;
  }

  const std::vector<double> scale_ = {2, -1};
  const std::vector<double> shift_ = {0.5, 3};
  const std::vector<double> gradient_ = {1, -2, 0.5, 3, -1, 0.25};  // of out
};

TEST_F(BatchNormTest, ColumnsHaveTheWantedMeanAndDeviation) {
  const std::vector<double> statistics = Statistics(Out(kIn));
  for (int64_t column = 0; column < kColumns; ++column) {
    EXPECT_NEAR(statistics[column], shift_[column], 1e-12);
    EXPECT_NEAR(std::sqrt(statistics[kColumns + column]),
                std::abs(scale_[column]), 1e-3);
  }
}

TEST_F(BatchNormTest, GradientIsThatOfTheLossThroughTheStatisticsToo) {
  const std::vector<double> statistics = Statistics(kIn);
  const std::vector<double> scale_gradient = SumOverRows(BatchNormScale<double>{
      kIn.data(), MomentsOf(statistics), gradient_.data()});
  const std::vector<double> shift_gradient =
      SumOverRows(Element<double>{gradient_.data(), kColumns, 1});
  std::vector<double> in_gradient(kIn.size());
  const BatchNormGradient<double> gradient{
      kIn.data(),       MomentsOf(statistics), scale_.data(),
      gradient_.data(), scale_gradient.data(), shift_gradient.data(),
      1.0 / kRows,      in_gradient.data()};
  Grid(kRows, kColumns, gradient);

  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < kIn.size(); ++i) {
    std::vector<double> more = kIn;
    std::vector<double> less = kIn;
    more[i] += kStep;
    less[i] -= kStep;
    EXPECT_NEAR(in_gradient[i], (Loss(more) - Loss(less)) / (2 * kStep), 1e-6);
  }
}

TEST(ColumnsTest, LayerNormScaleIsTheGradientTimesTheNormalisedInput) {
  const std::vector<double> statistics = {5.5, 0.25, 16, 0.5, 13, 2};
  const std::vector<double> gradient = {1, 2, 3, 4, 5, 6};
  const LayerNormScale<double> summand{kIn.data(), statistics.data(),
                                       gradient.data(), kColumns};
  EXPECT_DOUBLE_EQ(summand(0, 1), 2 * (10 - 5.5) * 0.25);
  EXPECT_DOUBLE_EQ(summand(2, 0), 5 * (6 - 13) * 2);
}

}  // namespace
}  // namespace lockstep::worker::kernels
