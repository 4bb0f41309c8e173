#include "common/collective/element_type.h"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ElementTypeTest, NamesAreReadAsTheyAreWritten) {
  for (int number = 1; number <= 13; ++number) {
    EXPECT_TRUE(IsElementType(number));
    const auto type = static_cast<ElementType>(number);
    EXPECT_THAT(ParseElementType(NameOf(type)), IsOkAndHolds(type));
  }
  EXPECT_THAT(ParseElementType("complex64"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"complex64\" is no element type"),
                             HasSubstr("int64, bool, int8"))));
  EXPECT_FALSE(IsElementType(0));
  EXPECT_FALSE(IsElementType(14));
}

TEST(ElementTypeTest, IntegersHaveTheirSizes) {
  const std::vector<std::pair<ElementType, size_t>> types = {
      {ElementType::kInt8, 1},  {ElementType::kUint8, 1},
      {ElementType::kInt16, 2}, {ElementType::kUint16, 2},
      {ElementType::kInt32, 4}, {ElementType::kUint32, 4},
      {ElementType::kInt64, 8}, {ElementType::kUint64, 8}};
  for (const auto& [type, size] : types) {
    EXPECT_EQ(SizeOf(type), size) << NameOf(type);
    EXPECT_TRUE(IsInteger(type)) << NameOf(type);
    EXPECT_FALSE(IsFloatingPoint(type)) << NameOf(type);
    EXPECT_THAT(CheckIsNumber(type), IsOk());
    EXPECT_EQ(VisitInteger(type, [](auto zero) { return sizeof(zero); }), size)
        << NameOf(type);
    EXPECT_EQ(
        VisitInteger(
            type, [](auto zero) { return std::is_signed_v<decltype(zero)>; }),
        NameOf(type)[0] != 'u')
        << NameOf(type);
  }
}

TEST(ElementTypeTest, ABoolIsNoNumber) {
  EXPECT_EQ(SizeOf(ElementType::kBool), 1u);
  EXPECT_FALSE(IsInteger(ElementType::kBool));
  EXPECT_FALSE(IsFloatingPoint(ElementType::kBool));
  EXPECT_THAT(
      CheckIsNumber(ElementType::kBool),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("bool cannot be added"), HasSubstr("int32"))));
}

TEST(ElementTypeTest, VariablesHaveTheSameTypes) {
  for (const DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    const ElementType type = ElementTypeOf(dtype);
    EXPECT_EQ(NameOf(type), DTypeName(dtype));
    EXPECT_EQ(SizeOf(type), ElementSize(dtype));
    EXPECT_FALSE(IsInteger(type));
    EXPECT_TRUE(IsFloatingPoint(type));
  }
}

}  // namespace
}  // namespace lockstep
