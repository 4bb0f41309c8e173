#include "common/collective/element_type.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ElementTypeTest, NamesAreReadAsTheyAreWritten) {
  for (int number = 1; number <= 6; ++number) {
    const auto type = static_cast<ElementType>(number);
    EXPECT_THAT(ParseElementType(NameOf(type)), IsOkAndHolds(type));
  }
  EXPECT_THAT(ParseElementType("complex64"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"complex64\" is no element type")));
}

TEST(ElementTypeTest, VariablesHaveTheSameTypes) {
  for (const DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    const ElementType type = ElementTypeOf(dtype);
    EXPECT_EQ(NameOf(type), DTypeName(dtype));
    EXPECT_EQ(SizeOf(type), ElementSize(dtype));
    EXPECT_FALSE(IsInteger(type));
  }
  EXPECT_TRUE(IsInteger(ElementType::kInt32));
  EXPECT_EQ(SizeOf(ElementType::kInt64), 8u);
}

}  // namespace
}  // namespace lockstep
