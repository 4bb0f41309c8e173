#include "common/collective/value.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

TEST(ValueTest, ElementsThatAreNotThoseOfTheShapeAreFound) {
  const auto refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      HasSubstr("a value of shape [4] has 2 elements in 8 bytes, but must have "
                "16 bytes of float32"));
  const Value two = Value::Of<float>(ElementType::kFloat32, {4}, {1, 2});
  EXPECT_THAT(two.Check(), refused);
  EXPECT_THAT(two.Reshaped({2}).Check(), IsOk());
  EXPECT_EQ(two.Description(), "float32 [4] with 2 elements");
  EXPECT_THAT(CheckLeaf(two), refused);
  EXPECT_THAT(CheckLeaf(Slices{{0, 1, 2, 3}, two, {}}), refused);
  EXPECT_THAT(CheckLeaf(Slices{{0, 1}, two.Reshaped({2}), {}}), IsOk());
  EXPECT_THAT(CheckLeaf(Slices{{0}, two.Reshaped({2}), {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slices have 1 indices")));
  EXPECT_THAT(Value::Of<float>(ElementType::kFloat32, {-1}, {}).Check(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // An element that is not whole has no number.
  const Value part =
      Value::Of<char>(ElementType::kFloat32, {1}, {1, 2, 3, 4, 5});
  EXPECT_THAT(part.Elements<float>(), SizeIs(1));
}

}  // namespace
}  // namespace lockstep
