#include "worker/models/layers/plain_layers.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr ElementType kDouble = ElementType::kFloat64;

class PlainLayersTest : public ::testing::Test {
 protected:
  std::vector<double> Forward(Layer& layer, const Shape& shape,
                              const std::vector<double>& in) {
    const absl::StatusOr<Tensor> out =
        layer.Forward(*backend_, ConstTensor::Of<double>(in, shape), {});
    EXPECT_OK(out);
    return std::vector<double>(out->data<double>(),
                               out->data<double>() + out->size());
  }

  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
};

TEST_F(PlainLayersTest, GlobalAverageIsOverEachPicture) {
  GlobalAveragePoolLayer layer(kDouble);

  EXPECT_THAT(Forward(layer, {2, 1, 2, 1}, {1, 3, 5, 9}), ElementsAre(2, 7));
}

TEST_F(PlainLayersTest, DropoutOfEvaluationIsNone) {
  DropoutLayer layer(0.9, 1, kDouble);
  layer.BeginPass({.training = false});

  EXPECT_THAT(Forward(layer, {4}, {1, 1, 1, 1}), Each(1));
}

TEST_F(PlainLayersTest, DropoutIsRandomUnlessItsRateIsZero) {
  EXPECT_TRUE(DropoutLayer(0.1, 1, kDouble).random());
  EXPECT_FALSE(DropoutLayer(0, 1, kDouble).random());
  EXPECT_FALSE(ReluLayer(kDouble).random());
}

TEST_F(PlainLayersTest, DropoutOfTwoLayersDiffers) {
  const std::vector<double> ones(100, 1);
  DropoutLayer first(0.5, 1, kDouble);
  DropoutLayer second(0.5, 2, kDouble);
  first.BeginPass({.key = 7});
  second.BeginPass({.key = 7});

  EXPECT_NE(Forward(first, {100}, ones), Forward(second, {100}, ones));
}

TEST_F(PlainLayersTest, StrideDividesThePictureRoundingUp) {
  ConvolutionLayer layer(
      {.name = "conv", .channels = 1, .filters = 1, .stride = 2}, kDouble);
  const std::vector<double> image(15, 1), filter(9, 1);
  const ConstTensor variable = ConstTensor::Of<double>(filter, {3, 3, 1, 1});

  const absl::StatusOr<Tensor> out = layer.Forward(
      *backend_, ConstTensor::Of<double>(image, {1, 5, 3, 1}), {variable});

  ASSERT_OK(out);
  EXPECT_EQ(out->shape(), Shape({1, 3, 2, 1}));
  EXPECT_EQ(out->data<double>()[0], 4);  // a corner sees four pixels
}

}  // namespace
}  // namespace lockstep::worker
