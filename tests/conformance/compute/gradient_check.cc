#include "tests/conformance/compute/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gtest/gtest.h"

namespace lockstep::testing {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;

double Scale(double a, double b) {
  return std::max({1.0, std::abs(a), std::abs(b)});
}

}  // namespace

double Dot(const std::vector<double>& values,
           const std::vector<double>& weights) {
  EXPECT_EQ(values.size(), weights.size());
  return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
}

void ExpectGradient(
    const std::function<double(const std::vector<double>&)>& loss,
    const std::vector<double>& point, const std::vector<double>& gradient,
    const std::string& what) {
  ASSERT_EQ(gradient.size(), point.size()) << what;
  std::vector<double> moved = point;
  for (size_t i = 0; i < point.size(); ++i) {
    moved[i] = point[i] + kStep;
    const double above = loss(moved);
    moved[i] = point[i] - kStep;
    const double below = loss(moved);
    moved[i] = point[i];

    const double expected = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient[i], expected,
                kTolerance * Scale(gradient[i], expected))
        << what << "[" << i << "]";
  }
}

void ExpectNear(const std::vector<double>& actual,
                const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i],
                tolerance * Scale(actual[i], expected[i]))
        << "element " << i;
  }
}

}  // namespace lockstep::testing
