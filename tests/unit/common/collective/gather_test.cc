#include "common/collective/gather.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Value Ints(std::vector<int64_t> shape, const std::vector<int32_t>& elements) {
  return Value::Of<int32_t>(ElementType::kInt32, std::move(shape), elements);
}

TEST(GatherTest, JoinsAlongAnyAxis) {
  const Value a = Ints({2, 1}, {1, 2}), b = Ints({2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(*Gather({a, b}, 1), Ints({2, 3}, {1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(*Gather({b, b}, 0), Ints({4, 2}, {3, 4, 5, 6, 3, 4, 5, 6}));
  EXPECT_EQ(*Gather({Ints({0, 2}, {}), b}, 0), b);
}

TEST(GatherTest, JoinsEveryType) {
  for (int number = 1; number <= 13; ++number) {
    const auto type = static_cast<ElementType>(number);
    const Value one = *Value::Zeros(type, {1, 3});
    EXPECT_EQ(*Gather({one, one}, 0), *Value::Zeros(type, {2, 3}));
  }
  const Value flags = Value::Of<uint8_t>(ElementType::kBool, {2}, {1, 0});
  EXPECT_EQ(*Gather({flags, flags}, 0),
            Value::Of<uint8_t>(ElementType::kBool, {4}, {1, 0, 1, 0}));
  EXPECT_THAT(ToDense({{0, 1}, flags, {{2}}}),
              StatusIs(kInvalid, HasSubstr("bool cannot be added")));
}

// Shapes come from other processes. An empty value with many rows must not take
// time for each of them.
TEST(GatherTest, EmptyValuesMayHaveAnySizes) {
  const Value rows = *Value::Zeros(ElementType::kInt8, {int64_t{1} << 40, 0});
  EXPECT_EQ(*Gather({rows, rows}, 1), rows);
  const int64_t half = int64_t{1} << 62;
  const Value columns = *Value::Zeros(ElementType::kInt8, {0, half});
  EXPECT_EQ(Gather({columns}, 1)->shape(), columns.shape());
  EXPECT_THAT(Gather({columns, columns}, 1),
              StatusIs(kInvalid, HasSubstr("along axis 1")));
}

TEST(GatherTest, AxisOrValuesThatDoNotFitAreRefused) {
  const Value a = Ints({2, 1}, {1, 2});
  EXPECT_THAT(Gather({a}, 2), StatusIs(kInvalid, HasSubstr("axis is 2")));
  EXPECT_THAT(Gather({a}, -1), StatusIs(kInvalid));
  EXPECT_THAT(Gather({}, 0), StatusIs(kInvalid));
  EXPECT_THAT(Gather({a, Ints({3, 1}, {1, 2, 3})}, 1),
              StatusIs(kInvalid, HasSubstr("rank 1 has int32 [3,1]")));
  EXPECT_THAT(
      Gather({a, Value::Of<float>(ElementType::kFloat32, {2, 1}, {1, 2})}, 0),
      StatusIs(kInvalid));
}

TEST(GatherTest, ElementsThatAreNotThoseOfTheShapeAreNotRead) {
  const auto refused =
      StatusIs(kInvalid, HasSubstr("a value of shape [4,1] has 2 elements"));
  const Value two = Ints({4, 1}, {1, 2});
  EXPECT_THAT(Gather({Ints({1, 1}, {1}), two}, 0), refused);
  EXPECT_THAT(ToDense({{0, 1, 2, 3}, two, {{4, 1}}}), refused);
  // More than the shape has would be written beyond the end of the result.
  EXPECT_THAT(Gather({Ints({1, 1}, {1, 2, 3, 4, 5})}, 0), StatusIs(kInvalid));
}

TEST(GatherTest, EqualIndicesOfSlicesAreAdded) {
  EXPECT_EQ(*ToDense({{2, 0, 2}, Ints({3, 1}, {1, 2, 4}), {{3, 1}}}),
            Ints({3, 1}, {2, 0, 5}));
}

TEST(GatherTest, SlicesThatDoNotFitTheirShapeAreRefused) {
  const Value rows = Ints({1, 1}, {1});
  EXPECT_THAT(ToDense({{3}, rows, {{3, 1}}}),
              StatusIs(kInvalid, HasSubstr("index 3")));
  EXPECT_THAT(ToDense({{-1}, rows, {{3, 1}}}), StatusIs(kInvalid));
  EXPECT_THAT(ToDense({{0}, rows, {{3, 2}}}), StatusIs(kInvalid));
  EXPECT_THAT(ToDense({{0}, rows, std::nullopt}),
              StatusIs(kInvalid, HasSubstr("dense_shape")));
}

}  // namespace
}  // namespace lockstep
