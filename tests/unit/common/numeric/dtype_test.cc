#include "common/numeric/dtype.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DType kNone = static_cast<DType>(77);

TEST(DTypeTest, SizesAreThoseOfTheElements) {
  EXPECT_EQ(ElementSize(DType::kFloat16), 2u);
  EXPECT_EQ(ElementSize(DType::kFloat32), sizeof(float));
  EXPECT_EQ(ElementSize(DType::kFloat64), sizeof(double));
  EXPECT_EQ(ElementSize(DType::kBFloat16), 2u);
}

TEST(DTypeTest, NamesAreReadAsTheyAreWritten) {
  for (DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    EXPECT_THAT(ParseDType(DTypeName(dtype)), IsOkAndHolds(dtype));
  }
  EXPECT_EQ(DTypeName(DType::kFloat32), "float32");
}

TEST(DTypeTest, OtherNamesAreRefusedWithTheAllowedOnes) {
  for (std::string_view name : {"", "float", "FLOAT32", "float32 ", "int64"}) {
    EXPECT_THAT(ParseDType(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("\"" + std::string(name) + "\""),
                               HasSubstr("float16, float32, float64"))));
  }
}

TEST(DTypeTest, NumberThatIsNoneHasNoSize) {
  EXPECT_EQ(ElementSize(kNone), 0u);
  EXPECT_EQ(DTypeName(kNone), "invalid");
}

TEST(GradientTypeTest, GradientsOfEveryVariableMayBeAsItsElements) {
  for (DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    EXPECT_THAT(GradientElementSize(dtype, GradientType::kVariable),
                IsOkAndHolds(ElementSize(dtype)));
  }
}

TEST(GradientTypeTest, BFloat16IsForFloat32Alone) {
  EXPECT_THAT(GradientElementSize(DType::kFloat32, GradientType::kBFloat16),
              IsOkAndHolds(2u));
  for (DType dtype : {DType::kFloat16, DType::kFloat64, DType::kBFloat16}) {
    EXPECT_THAT(GradientElementSize(dtype, GradientType::kBFloat16),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("BFLOAT16"),
                               HasSubstr(std::string(DTypeName(dtype))))));
  }
}

TEST(GradientTypeTest, NumberThatIsNoneHasNoSize) {
  const auto none = static_cast<GradientType>(77);

  EXPECT_THAT(GradientElementSize(DType::kFloat32, none),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(GradientTypeName(none), "invalid");
}

TEST(DTypeTest, NumbersOfFilesAndMessagesStay) {
  EXPECT_EQ(static_cast<int>(DType::kFloat16), 1);
  EXPECT_EQ(static_cast<int>(DType::kFloat32), 2);
  EXPECT_EQ(static_cast<int>(DType::kFloat64), 3);
  EXPECT_EQ(static_cast<int>(DType::kBFloat16), 4);
}

}  // namespace
}  // namespace lockstep
