#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class SoftmaxTest
    : public ::testing::TestWithParam<std::tuple<std::string, worker::Shape>> {
 protected:
  SoftmaxTest() : device_(std::get<0>(GetParam())) {
    for (int64_t i = 0; i < shape_[0]; ++i) {
      labels_.push_back(static_cast<int32_t>(i * 5 % shape_[1]));
    }
  }

  double Loss(const std::vector<double>& logits) {
    gradient_ = device_.Blank(kDouble, shape_);
    const worker::Tensor loss = device_.Number();
    const absl::Status status = device_.backend().SoftmaxCrossEntropy(
        device_.Put(kDouble, shape_, logits),
        device_.Indices(labels_, shape_[1]), loss, gradient_);
    EXPECT_TRUE(status.ok()) << status;
    return device_.NumberAt(loss);
  }

  // The definition, without the care against overflow.
  double Expected(const std::vector<double>& logits) const {
    double loss = 0;
    for (int64_t row = 0; row < shape_[0]; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < shape_[1]; ++i) {
        sum += std::exp(logits[row * shape_[1] + i]);
      }
      loss += std::log(sum) - logits[row * shape_[1] + labels_[row]];
    }
    return shape_[0] == 0 ? 0 : loss / static_cast<double>(shape_[0]);
  }

  Device device_;
  const worker::Shape shape_ = std::get<1>(GetParam());
  std::vector<int32_t> labels_;
  worker::Tensor gradient_;  // of the last Loss()
};

TEST_P(SoftmaxTest, LossIsTheDefinition) {
  const auto logits = RandomValues(shape_, 1);

  EXPECT_NEAR(Loss(logits), Expected(logits), 1e-12);
}

TEST_P(SoftmaxTest, GradientIsTheDerivative) {
  const auto logits = RandomValues(shape_, 1);
  Loss(logits);

  ExpectGradient([&](const auto& x) { return Expected(x); }, logits,
                 device_.Get(gradient_), "logits");
}

TEST_P(SoftmaxTest, LargeLogitsDoNotOverflow) {
  auto logits = RandomValues(shape_, 1);
  const double expected = Expected(logits);
  for (double& logit : logits) logit += 1e6;

  EXPECT_NEAR(Loss(logits), expected, 1e-8);
}

INSTANTIATE_TEST_SUITE_P(
    Backends, SoftmaxTest,
    ::testing::Combine(::testing::ValuesIn(ViableBackends()),
                       ::testing::Values(worker::Shape{1, 1},
                                         worker::Shape{1, 7},
                                         worker::Shape{5, 2},
                                         worker::Shape{13, 11},
                                         worker::Shape{0, 3})));

class CountCorrectTest : public ::testing::TestWithParam<std::string> {
 protected:
  CountCorrectTest() : device_(GetParam()) {}

  double Count(const worker::Shape& shape, const std::vector<double>& logits,
               const std::vector<int32_t>& labels) {
    const worker::Tensor count = device_.Number();
    const absl::Status status = device_.backend().CountCorrect(
        device_.Put(kDouble, shape, logits), device_.Indices(labels, shape[1]),
        count);
    EXPECT_TRUE(status.ok()) << status;
    return device_.NumberAt(count);
  }

  Device device_;
};

TEST_P(CountCorrectTest, CountsRowsThatAreLargestAtTheirLabel) {
  EXPECT_EQ(Count({3, 2}, {1, 2, 4, 3, 5, 6}, {1, 0, 0}), 2);
}

TEST_P(CountCorrectTest, FirstOfEqualsCounts) {
  EXPECT_EQ(Count({2, 3}, {7, 7, 0, 7, 7, 0}, {0, 1}), 1);
}

TEST_P(CountCorrectTest, RowWithNaNNeverCounts) {
  EXPECT_EQ(Count({3, 2}, {kNaN, 1, 1, kNaN, kNaN, kNaN}, {1, 0, 0}), 0);
}

TEST_P(CountCorrectTest, EmptyBatchHasNoneCorrect) {
  EXPECT_EQ(Count({0, 4}, {}, {}), 0);
}

INSTANTIATE_TEST_SUITE_P(Backends, CountCorrectTest,
                         ::testing::ValuesIn(ViableBackends()));

}  // namespace
}  // namespace lockstep::testing
