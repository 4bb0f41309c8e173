#include "common/collective/value.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(ValueTest, ZerosHaveTheShape) {
  const Value zeros = *Value::Zeros(ElementType::kInt64, {2, 3});
  EXPECT_THAT(zeros.Elements<int64_t>(), ::testing::AllOf(SizeIs(6), Each(0)));
  EXPECT_EQ(zeros.Description(), "int64 [2,3]");
  EXPECT_EQ(Value::Zeros(ElementType::kFloat32, {})->size(), 1u);
  EXPECT_EQ(Value::Zeros(ElementType::kFloat32, {4, 0})->size(), 0u);
}

TEST(ValueTest, ShapesThatCannotBeAreRefused) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{-1}, {int64_t{1} << 62, int64_t{1} << 62}}) {
    EXPECT_THAT(Value::Zeros(ElementType::kFloat32, shape),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ValueTest, ElementsComeBack) {
  const Value value = Value::Of<float>(ElementType::kFloat32, {2}, {1, 2});
  EXPECT_THAT(value.Elements<float>(), ElementsAre(1, 2));
  EXPECT_EQ(value.Reshaped({2, 1}).shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(DescriptionOf(value), "float32 [2]");
  EXPECT_EQ(DescriptionOf(Slices{{0, 1}, value, {}}), "slices of float32 [2]");
}

}  // namespace
}  // namespace lockstep
