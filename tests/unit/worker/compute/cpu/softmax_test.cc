#include "worker/compute/cpu/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cpu {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(SoftmaxTest, EqualLogitsShareTheProbability) {
  const std::vector<double> logits = {3, 3, 3, 3};
  const std::vector<int32_t> labels = {2};
  std::vector<double> gradient(4);

  const double loss =
      SoftmaxCrossEntropy(1, 4, logits.data(), labels.data(), gradient.data());

  EXPECT_NEAR(loss, std::log(4), 1e-12);
  EXPECT_THAT(gradient, ElementsAre(0.25, 0.25, -0.75, 0.25));
}

TEST(SoftmaxTest, LossAndGradientAreMeansOverTheBatch) {
  const std::vector<double> logits = {0, 0, 0, 0};
  const std::vector<int32_t> labels = {0, 1};
  std::vector<double> gradient(4);

  const double loss =
      SoftmaxCrossEntropy(2, 2, logits.data(), labels.data(), gradient.data());

  EXPECT_NEAR(loss, std::log(2), 1e-12);
  EXPECT_THAT(gradient, ElementsAre(-0.25, 0.25, 0.25, -0.25));
}

TEST(SoftmaxTest, CertaintyCostsNothingAndErrorItsMargin) {
  const std::vector<float> logits = {1000, 0, 1000, 0};
  const std::vector<int32_t> labels = {0, 1};
  std::vector<float> gradient(4);

  const double loss =
      SoftmaxCrossEntropy(2, 2, logits.data(), labels.data(), gradient.data());

  EXPECT_THAT(loss, DoubleNear(500, 1e-6));
  EXPECT_THAT(gradient, ElementsAre(0, 0, 0.5, -0.5));
}

TEST(SoftmaxTest, NaNReachesLossAndGradient) {
  const std::vector<float> logits = {std::numeric_limits<float>::quiet_NaN(),
                                     0};
  const std::vector<int32_t> labels = {1};
  std::vector<float> gradient(2);

  const double loss =
      SoftmaxCrossEntropy(1, 2, logits.data(), labels.data(), gradient.data());

  EXPECT_TRUE(std::isnan(loss));
  EXPECT_TRUE(std::isnan(gradient[1]));
}

TEST(SoftmaxTest, EmptyBatchCostsNothing) {
  EXPECT_EQ(SoftmaxCrossEntropy<float>(0, 3, nullptr, nullptr, nullptr), 0);
}

TEST(CountCorrectTest, LabelMustBeTheFirstLargest) {
  const std::vector<float> logits = {1, 3, 3, 3, 1, 1};
  const std::vector<int32_t> first = {1, 0};
  const std::vector<int32_t> second = {2, 1};

  EXPECT_EQ(CountCorrect(2, 3, logits.data(), first.data()), 2);
  EXPECT_EQ(CountCorrect(2, 3, logits.data(), second.data()), 0);
}

}  // namespace
}  // namespace lockstep::cpu
