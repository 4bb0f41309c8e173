#include "worker/models/layers/conv_layer.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

// One 2x2 image, a 1x1 kernel that doubles, a bias of -3.
class ConvLayerTest : public ::testing::Test {
 protected:
  ConvLayerTest()
      : layer_({.name = "conv1", .kernel_size = 1, .channels = 1, .filters = 1},
               ElementType::kFloat64) {}

  absl::Status Backward(const Tensor* in_gradient) {
    return layer_.Backward(
        {*backend_, variables_, gradients_,
         [this](size_t variable) { order_.push_back(variable); }},
        Tensor::Of<double>(absl::MakeSpan(out_gradient_), {1, 1, 1, 1}),
        in_gradient);
  }

  ConvLayer layer_;
  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
  std::vector<double> image_ = {1, 2, 4, 3};
  std::vector<double> filter_ = {2};
  std::vector<double> bias_ = {-3};
  std::vector<double> out_gradient_ = {5};
  std::vector<double> filter_gradient_ = {9};
  std::vector<double> bias_gradient_ = {9};
  ConstTensor in_ = ConstTensor::Of<double>(image_, {1, 2, 2, 1});
  std::vector<ConstTensor> variables_ = {
      ConstTensor::Of<double>(filter_, {1, 1, 1, 1}),
      ConstTensor::Of<double>(bias_, {1})};
  std::vector<Tensor> gradients_ = {
      Tensor::Of<double>(absl::MakeSpan(filter_gradient_), {1, 1, 1, 1}),
      Tensor::Of<double>(absl::MakeSpan(bias_gradient_), {1})};
  std::vector<size_t> order_;
};

TEST_F(ConvLayerTest, VariablesAreFiltersAndAZeroBias) {
  const ConvLayer layer(
      {.name = "conv2", .kernel_size = 5, .channels = 3, .filters = 8},
      ElementType::kFloat32);

  EXPECT_THAT(
      layer.variables(),
      ElementsAre(
          VariableSpec{"conv2/filters",
                       {5, 5, 3, 8},
                       DType::kFloat32,
                       {Initializer::Kind::kHeNormal}},
          VariableSpec{"conv2/bias", {8}, DType::kFloat32, Initializer{}}));
}

TEST_F(ConvLayerTest, ForwardConvolvesCutsOffAndPools) {
  const absl::StatusOr<Tensor> out = layer_.Forward(*backend_, in_, variables_);

  ASSERT_OK(out);
  EXPECT_EQ(out->shape(), Shape({1, 1, 1, 1}));
  EXPECT_EQ(out->data<double>()[0], 4 * 2 - 3);
}

TEST_F(ConvLayerTest, BackwardGoesThroughTheLargestPixel) {
  ASSERT_OK(layer_.Forward(*backend_, in_, variables_));
  std::vector<double> in_gradient(4, 9);
  const Tensor in_gradient_tensor =
      Tensor::Of<double>(absl::MakeSpan(in_gradient), {1, 2, 2, 1});

  ASSERT_OK(Backward(&in_gradient_tensor));

  EXPECT_THAT(filter_gradient_, ElementsAre(5 * 4));
  EXPECT_THAT(bias_gradient_, ElementsAre(5));
  EXPECT_THAT(in_gradient, ElementsAre(0, 0, 5 * 2, 0));
  EXPECT_THAT(order_, ElementsAre(1, 0));
}

TEST_F(ConvLayerTest, NothingGoesThroughWhereAllIsCutOff) {
  bias_ = {-100};
  ASSERT_OK(layer_.Forward(*backend_, in_, variables_));

  ASSERT_OK(Backward(nullptr));

  EXPECT_THAT(filter_gradient_, ElementsAre(0));
  EXPECT_THAT(bias_gradient_, ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::worker
