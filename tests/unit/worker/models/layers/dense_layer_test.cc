#include "worker/models/layers/dense_layer.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

// in [1,2] = (1, -1), weights [2,2] = (1 2; 3 4), bias = (1, 10): the sums are
// -1 and 8.
class DenseLayerTest : public ::testing::Test {
 protected:
  static DenseLayer Layer(bool relu) {
    return DenseLayer(
        {.name = "hidden1", .inputs = 2, .units = 2, .relu = relu},
        ElementType::kFloat64);
  }

  std::vector<double> Forward(DenseLayer& layer) {
    const absl::StatusOr<Tensor> out =
        layer.Forward(*backend_, in_, variables_);
    EXPECT_OK(out);
    return std::vector<double>(out->data<double>(), out->data<double>() + 2);
  }

  absl::Status Backward(DenseLayer& layer, const Tensor* in_gradient) {
    return layer.Backward(
        {*backend_, variables_, gradients_,
         [this](size_t variable) { order_.push_back(variable); }},
        Tensor::Of<double>(absl::MakeSpan(out_gradient_), {1, 2}), in_gradient);
  }

  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
  std::vector<double> in_values_ = {1, -1};
  std::vector<double> weights_ = {1, 2, 3, 4};
  std::vector<double> bias_ = {1, 10};
  std::vector<double> out_gradient_ = {5, 6};
  std::vector<double> weights_gradient_ = {9, 9, 9, 9};
  std::vector<double> bias_gradient_ = {9, 9};
  ConstTensor in_ = ConstTensor::Of<double>(in_values_, {1, 1, 2, 1});
  std::vector<ConstTensor> variables_ = {
      ConstTensor::Of<double>(weights_, {2, 2}),
      ConstTensor::Of<double>(bias_, {2})};
  std::vector<Tensor> gradients_ = {
      Tensor::Of<double>(absl::MakeSpan(weights_gradient_), {2, 2}),
      Tensor::Of<double>(absl::MakeSpan(bias_gradient_), {2})};
  std::vector<size_t> order_;
};

TEST_F(DenseLayerTest, WeightsThatAreNotGivenAreNoZeros) {
  EXPECT_EQ(Layer(/*relu=*/true).variables()[0].initializer.kind,
            Initializer::Kind::kHeNormal);
  EXPECT_EQ(Layer(/*relu=*/false).variables()[0].initializer.kind,
            Initializer::Kind::kGlorotUniform);
}

TEST_F(DenseLayerTest, VariablesAreWeightsAndAZeroBias) {
  const Initializer glorot = {.kind = Initializer::Kind::kGlorotUniform};
  const DenseLayer layer(
      {.name = "logits", .inputs = 3, .units = 2, .weights = glorot},
      ElementType::kFloat32);

  EXPECT_THAT(
      layer.variables(),
      ElementsAre(
          VariableSpec{"logits/weights", {3, 2}, DType::kFloat32, glorot},
          VariableSpec{"logits/bias", {2}, DType::kFloat32, Initializer{}}));
}

TEST_F(DenseLayerTest, ForwardIsWeightsThenBias) {
  DenseLayer layer = Layer(/*relu=*/false);

  EXPECT_THAT(Forward(layer), ElementsAre(-1, 8));
}

TEST_F(DenseLayerTest, ReluCutsOffNegatives) {
  DenseLayer layer = Layer(/*relu=*/true);

  EXPECT_THAT(Forward(layer), ElementsAre(0, 8));
}

TEST_F(DenseLayerTest, BackwardGivesAllGradients) {
  DenseLayer layer = Layer(/*relu=*/true);
  Forward(layer);
  std::vector<double> in_gradient = {9, 9};
  const Tensor in_gradient_tensor =
      Tensor::Of<double>(absl::MakeSpan(in_gradient), {1, 1, 2, 1});

  ASSERT_OK(Backward(layer, &in_gradient_tensor));

  EXPECT_THAT(weights_gradient_, ElementsAre(0, 6, 0, -6));
  EXPECT_THAT(bias_gradient_, ElementsAre(0, 6));
  EXPECT_THAT(in_gradient, ElementsAre(12, 24));
  EXPECT_THAT(order_, ElementsAre(1, 0));
}

TEST_F(DenseLayerTest, FirstLayerNeedsNoInputGradient) {
  DenseLayer layer = Layer(/*relu=*/false);
  Forward(layer);

  ASSERT_OK(Backward(layer, nullptr));

  EXPECT_THAT(weights_gradient_, ElementsAre(5, 6, -5, -6));
}

TEST(AppendDenseTest, HiddenLayersComeBeforeTheLogits) {
  std::vector<std::unique_ptr<Layer>> layers;

  AppendDense(7, {5, 3}, 2, ElementType::kFloat32, layers);

  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0]->variables()[0].name, "hidden1/weights");
  EXPECT_THAT(layers[0]->variables()[0].shape, ElementsAre(7, 5));
  EXPECT_EQ(layers[1]->variables()[0].name, "hidden2/weights");
  EXPECT_THAT(layers[1]->variables()[0].shape, ElementsAre(5, 3));
  EXPECT_EQ(layers[2]->variables()[0].name, "logits/weights");
  EXPECT_THAT(layers[2]->variables()[0].shape, ElementsAre(3, 2));
}

}  // namespace
}  // namespace lockstep::worker
