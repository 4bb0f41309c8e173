#include "worker/models/layers/layer.h"

#include "gtest/gtest.h"
#include "worker/models/layers/layer_stack.h"
#include "worker/models/layers/plain_layers.h"

namespace lockstep::worker {
namespace {

TEST(LayerTest, VariablesKeepThePrecisionOfTheTensors) {
  EXPECT_EQ(VariableType(ElementType::kFloat32), DType::kFloat32);
  EXPECT_EQ(VariableType(ElementType::kFloat64), DType::kFloat64);
}

TEST(LayerTest, LayersAreRandomIfOneInsideOfThemIs) {
  constexpr ElementType kFloat = ElementType::kFloat32;
  const auto residual = [&](double rate) {
    Layers branch;
    branch.push_back(std::make_unique<DropoutLayer>(rate, 1, kFloat));
    Layers layers;
    layers.push_back(std::make_unique<ReluLayer>(kFloat));
    layers.push_back(
        std::make_unique<ResidualLayer>(std::move(branch), Layers(), kFloat));
    return AnyRandom(layers);
  };

  EXPECT_TRUE(residual(0.5));
  EXPECT_FALSE(residual(0));
}

}  // namespace
}  // namespace lockstep::worker
