#include "common/variable_spec.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(VariableSpecTest, ElementsAreTheProductOfTheDimensions) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({7}), 7);
  EXPECT_EQ(NumElements({3, 4, 5}), 60);
  EXPECT_EQ(NumElements({int64_t{1} << 40, 8}), int64_t{1} << 43);
}

TEST(VariableSpecTest, ShapesArePrintedAsLists) {
  EXPECT_EQ(ShapeString({}), "[]");
  EXPECT_EQ(ShapeString({7}), "[7]");
  EXPECT_EQ(ShapeString({3, -2}), "[3,-2]");
}

TEST(VariableSpecTest, SpecsAreEqualWhenEveryFieldIs) {
  const VariableSpec spec{
      "w", {2, 3}, DType::kFloat32, {Initializer::Kind::kNormal, 0, 1}};
  EXPECT_EQ(spec, VariableSpec(spec));

  VariableSpec other = spec;
  other.name = "v";
  EXPECT_NE(spec, other);
  other = spec;
  other.shape = {3, 2};
  EXPECT_NE(spec, other);
  other = spec;
  other.dtype = DType::kFloat64;
  EXPECT_NE(spec, other);
  other = spec;
  other.initializer.b = 2;
  EXPECT_NE(spec, other);
}

}  // namespace
}  // namespace lockstep
