#include "worker/models/layers/layer_stack.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"
#include "worker/models/layers/plain_layers.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

constexpr ElementType kDouble = ElementType::kFloat64;

// The gradients of whole models are checked where the models are.
class LayerStackTest : public ::testing::Test {
 protected:
  static Layers Relus(int count) {
    Layers layers;
    for (int i = 0; i < count; ++i) {
      layers.push_back(std::make_unique<ReluLayer>(kDouble));
    }
    return layers;
  }

  std::vector<double> Forward(Layer& layer) {
    const absl::StatusOr<Tensor> out = layer.Forward(*backend_, in_, {});
    EXPECT_OK(out);
    return std::vector<double>(out->data<double>(), out->data<double>() + 2);
  }

  std::vector<double> Backward(Layer& layer) {
    std::vector<double> out = {5, 6}, in(2);
    const Tensor in_gradient = Tensor::Of<double>(absl::MakeSpan(in), {1, 2});
    EXPECT_OK(layer.Backward({*backend_, {}, {}, [](size_t) {}},
                             Tensor::Of<double>(absl::MakeSpan(out), {1, 2}),
                             &in_gradient));
    return in;
  }

  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
  std::vector<double> in_values_ = {3, -4};
  ConstTensor in_ = ConstTensor::Of<double>(in_values_, {1, 2});
};

TEST_F(LayerStackTest, LayersFollowOneAnother) {
  LayerStack stack(Relus(3), kDouble);

  EXPECT_THAT(Forward(stack), ElementsAre(3, 0));
  EXPECT_THAT(Backward(stack), ElementsAre(5, 0));
}

TEST_F(LayerStackTest, ResidualAddsTheInput) {
  ResidualLayer layer(Relus(2), {}, kDouble);

  EXPECT_THAT(Forward(layer), ElementsAre(6, -4));
}

TEST_F(LayerStackTest, ShortcutIsAddedInTheInputsPlace) {
  ResidualLayer layer(Relus(2), Relus(1), kDouble);

  EXPECT_THAT(Forward(layer), ElementsAre(6, 0));
}

}  // namespace
}  // namespace lockstep::worker
