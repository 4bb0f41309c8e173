#include "worker/models/layer.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(LayerTest, VariablesKeepThePrecisionOfTheTensors) {
  EXPECT_EQ(VariableType(ElementType::kFloat32), DType::kFloat32);
  EXPECT_EQ(VariableType(ElementType::kFloat64), DType::kFloat64);
}

}  // namespace
}  // namespace lockstep
