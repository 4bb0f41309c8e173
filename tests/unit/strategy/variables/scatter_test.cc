#include "strategy/variables/scatter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

Value Rows(ElementType type, const std::vector<float>& numbers) {
  return Value::Of(type, {static_cast<int64_t>(numbers.size()), 1}, numbers);
}

TEST(ScatterTest, RowsAreAppliedOneAfterTheOther) {
  const struct {
    ScatterOp op;
    std::vector<float> after;
  } kCases[] = {
      {ScatterOp::kAdd, {8, 9, 10}},      {ScatterOp::kSubtract, {8, -9, 10}},
      {ScatterOp::kMultiply, {8, 0, 10}}, {ScatterOp::kDivide, {8, 0, 10}},
      {ScatterOp::kMin, {8, 0, 10}},      {ScatterOp::kMax, {8, 6, 10}},
      {ScatterOp::kUpdate, {8, 6, 10}},
  };
  const Slices rows{{1, 1}, Rows(ElementType::kFloat32, {3, 6}), std::nullopt};
  for (const auto& each : kCases) {
    Value target = Rows(ElementType::kFloat32, {8, 0, 10});
    EXPECT_THAT(ApplyScatter(each.op, rows, target), IsOk());
    EXPECT_EQ(target, Rows(ElementType::kFloat32, each.after))
        << static_cast<int>(each.op);
  }
}

TEST(ScatterTest, IntegersAreComparedInTheirType) {
  Value target = Value::Of<uint8_t>(ElementType::kUint8, {2, 1}, {200, 5});
  const Value row = Value::Of<uint8_t>(ElementType::kUint8, {1, 1}, {100});
  EXPECT_THAT(ApplyScatter(ScatterOp::kMin, {{0}, row, {}}, target), IsOk());
  EXPECT_THAT(ApplyScatter(ScatterOp::kMax, {{1}, row, {}}, target), IsOk());
  EXPECT_EQ(target,
            Value::Of<uint8_t>(ElementType::kUint8, {2, 1}, {100, 100}));
}

// Eight, four, two and zero in the type.
template <typename T>
void ExpectNoDivisionByZero(ElementType type, T eight, T four, T two, T zero) {
  const auto rows = [type](const std::vector<T>& numbers) {
    return Value::Of(type, {static_cast<int64_t>(numbers.size()), 1}, numbers);
  };
  Value target = rows({eight, eight});
  EXPECT_THAT(
      ApplyScatter(ScatterOp::kDivide, {{0, 1}, rows({two, zero}), {}}, target),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the rows hold a 0")));
  EXPECT_EQ(target, rows({eight, eight})) << NameOf(type);
  EXPECT_THAT(ApplyScatter(ScatterOp::kDivide, {{1}, rows({two}), {}}, target),
              IsOk());
  EXPECT_EQ(target, rows({eight, four})) << NameOf(type);
}

TEST(ScatterTest, NoRowIsDividedByZero) {
  ExpectNoDivisionByZero<uint16_t>(ElementType::kFloat16, 0x4800, 0x4400,
                                   0x4000, 0);
  ExpectNoDivisionByZero<uint16_t>(ElementType::kBFloat16, 0x4100, 0x4080,
                                   0x4000, 0);
  ExpectNoDivisionByZero<float>(ElementType::kFloat32, 8, 4, 2, -0.0f);
  ExpectNoDivisionByZero<double>(ElementType::kFloat64, 8, 4, 2, 0);
  ExpectNoDivisionByZero<int32_t>(ElementType::kInt32, 8, 4, 2, 0);
  ExpectNoDivisionByZero<uint8_t>(ElementType::kUint8, 8, 4, 2, 0);
}

TEST(ScatterTest, RowsOfBoolAreWrittenButNotAdded) {
  Value target = Value::Of<uint8_t>(ElementType::kBool, {2, 1}, {0, 0});
  const Slices rows{
      {1}, Value::Of<uint8_t>(ElementType::kBool, {1, 1}, {1}), {}};
  for (const ScatterOp op : {ScatterOp::kAdd, ScatterOp::kMax}) {
    EXPECT_THAT(ApplyScatter(op, rows, target),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("bool cannot be added")));
  }
  EXPECT_THAT(ApplyScatter(ScatterOp::kUpdate, rows, target), IsOk());
  EXPECT_EQ(target, Value::Of<uint8_t>(ElementType::kBool, {2, 1}, {0, 1}));
}

TEST(ScatterTest, RowsCanBeCheckedBeforeTheyAreApplied) {
  const Value target = Rows(ElementType::kFloat32, {8, 9});
  const Value row = Rows(ElementType::kFloat32, {3});
  EXPECT_THAT(CheckRows(ScatterOp::kMin, {{1}, row, std::nullopt}, target),
              IsOk());
  EXPECT_THAT(CheckRows(ScatterOp::kMin, {{2}, row, std::nullopt}, target),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ScatterTest, RowsThatDoNotFitChangeNothing) {
  Value target = Rows(ElementType::kFloat32, {8, 9});
  const Value before = target;
  const Slices outside{
      {0, 2}, Rows(ElementType::kFloat32, {3, 6}), std::nullopt};
  EXPECT_THAT(
      ApplyScatter(ScatterOp::kAdd, outside, target),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("index 2")));
  const Slices short_of_rows{
      {0, 1, 1}, Rows(ElementType::kFloat32, {3, 6}), std::nullopt};
  EXPECT_THAT(
      ApplyScatter(ScatterOp::kAdd, short_of_rows, target),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 indices")));
  const Slices short_of_elements{
      {0, 1}, Value::Of<float>(ElementType::kFloat32, {2, 1}, {3}), {}};
  EXPECT_THAT(ApplyScatter(ScatterOp::kAdd, short_of_elements, target),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("shape [2,1] has 1 elements")));
  EXPECT_EQ(target, before);
}

}  // namespace
}  // namespace lockstep::strategy
