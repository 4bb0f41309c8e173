#include "common/checkpoint/format/tensor_type.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(TensorTypeTest, NamesAndSizesAreThoseOfTheFormat) {
  EXPECT_EQ(TensorTypeName(TensorType::kF16), "F16");
  EXPECT_EQ(TensorTypeSize(TensorType::kF16), 2u);
  EXPECT_EQ(TensorTypeName(TensorType::kBF16), "BF16");
  EXPECT_EQ(TensorTypeSize(TensorType::kBF16), 2u);
  EXPECT_EQ(TensorTypeName(TensorType::kF32), "F32");
  EXPECT_EQ(TensorTypeSize(TensorType::kF32), 4u);
  EXPECT_EQ(TensorTypeName(TensorType::kF64), "F64");
  EXPECT_EQ(TensorTypeSize(TensorType::kF64), 8u);
  EXPECT_EQ(TensorTypeName(TensorType::kI64), "I64");
  EXPECT_EQ(TensorTypeSize(TensorType::kI64), 8u);
  for (const auto& [name, size] :
       {std::pair("BOOL", 1u), std::pair("U8", 1u), std::pair("I8", 1u),
        std::pair("F8_E4M3", 1u), std::pair("F8_E5M2", 1u),
        std::pair("I16", 2u), std::pair("U16", 2u), std::pair("I32", 4u),
        std::pair("U32", 4u), std::pair("U64", 8u)}) {
    const auto type = ParseTensorType(name);
    ASSERT_OK(type);
    EXPECT_EQ(TensorTypeSize(*type), size) << name;
    EXPECT_FALSE(IsReadable(*type)) << name;
  }
}

TEST(TensorTypeTest, NameIsParsedBack) {
  for (int i = 0; i <= static_cast<int>(TensorType::kU64); ++i) {
    const auto type = static_cast<TensorType>(i);
    EXPECT_THAT(ParseTensorType(TensorTypeName(type)), IsOkAndHolds(type));
  }
}

TEST(TensorTypeTest, OtherNamesAreRefusedWithTheAllowedOnes) {
  for (const char* name : {"", "f32", "F32 ", "BF17", "I31"}) {
    EXPECT_THAT(ParseTensorType(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("F16, BF16, F32, F64, I64")));
  }
}

TEST(TensorTypeTest, HugeNameIsNotRepeatedInTheMessage) {
  const auto parsed = ParseTensorType(std::string(1 << 20, 'F'));

  ASSERT_FALSE(parsed.ok());
  EXPECT_LT(parsed.status().message().size(), 200u);
}

TEST(TensorTypeTest, MessageHasNoBytesOfAnotherCharacterSet) {
  EXPECT_THAT(ParseTensorType("F\xFC\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dtype \"F\\xfc\\n\" is not")));
}

TEST(TensorTypeTest, VariableTypesAgreeInSize) {
  for (DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    EXPECT_EQ(TensorTypeSize(ToTensorType(dtype)), ElementSize(dtype));
    EXPECT_TRUE(IsReadable(ToTensorType(dtype)));
  }
}

}  // namespace
}  // namespace lockstep
