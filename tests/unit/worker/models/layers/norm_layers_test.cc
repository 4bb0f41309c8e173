#include "worker/models/layers/norm_layers.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"
#include "worker/models/layers/pass_context.h"

namespace lockstep::worker {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr ElementType kDouble = ElementType::kFloat64;

// Two pixels of one channel: 1 and 5, of mean 3 and variance 4.
class BatchNormLayerTest : public ::testing::Test {
 protected:
  std::vector<double> Forward(bool training) {
    layer_.BeginPass({.training = training});
    const absl::StatusOr<Tensor> out =
        layer_.Forward(*backend_, in_, variables_);
    EXPECT_OK(out);
    return std::vector<double>(out->data<double>(), out->data<double>() + 2);
  }

  BatchNormLayer layer_{"norm", 1, kDouble};
  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
  std::vector<double> pixels_ = {1, 5};
  ConstTensor in_ = ConstTensor::Of<double>(pixels_, {1, 1, 2, 1});
  std::vector<double> values_ = {2, 1, 7, 9};  // scale, shift, mean, variance
  std::vector<double> written_ = {0, 0, 0, 0};
  std::vector<ConstTensor> variables_;
  std::vector<Tensor> gradients_;

  void SetUp() override {
    for (int i = 0; i < 4; ++i) {
      variables_.push_back(ConstTensor(kDouble, {1}, &values_[i]));
      gradients_.push_back(Tensor(kDouble, {1}, &written_[i]));
    }
  }
};

TEST_F(BatchNormLayerTest, TrainingUsesTheBatch) {
  EXPECT_THAT(Forward(true),
              ElementsAre(DoubleNear(-1, 1e-4), DoubleNear(3, 1e-4)));
}

TEST_F(BatchNormLayerTest, EvaluationUsesTheMovingStatistics) {
  EXPECT_THAT(Forward(false),
              ElementsAre(DoubleNear(-3, 1e-4), DoubleNear(-1.0 / 3, 1e-4)));
}

TEST_F(BatchNormLayerTest, MovingStatisticsAreBuffers) {
  std::vector<std::string> buffers;
  for (const VariableSpec& variable : layer_.variables()) {
    if (variable.buffer) buffers.push_back(variable.name);
  }
  EXPECT_THAT(buffers, ElementsAre("norm/moving_mean", "norm/moving_variance"));
}

TEST_F(BatchNormLayerTest, MovingStatisticsAreDrawnToTheBatch) {
  Forward(true);
  std::vector<double> gradient = {1, 1};

  ASSERT_OK(layer_.Backward(
      {*backend_, variables_, gradients_, [](size_t) {}},
      Tensor::Of<double>(absl::MakeSpan(gradient), {1, 1, 2, 1}), nullptr));

  EXPECT_NEAR(written_[2], 0.1 * (7 - 3), 1e-12);
  EXPECT_NEAR(written_[3], 0.1 * (9 - 4), 1e-12);
}

}  // namespace
}  // namespace lockstep::worker
