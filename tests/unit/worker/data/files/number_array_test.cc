#include "worker/data/files/number_array.h"

#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
NumberArray Of(NumberType type, const std::vector<T>& elements) {
  NumberArray array{type, {static_cast<int64_t>(elements.size())}, {}};
  array.bytes.resize(elements.size() * sizeof(T));
  std::memcpy(array.bytes.data(), elements.data(), array.bytes.size());
  return array;
}

TEST(NumberArrayTest, ElementsOfEveryTypeBecomeFloats) {
  EXPECT_THAT(ToFloats(Of<uint8_t>(NumberType::kBool, {0, 1})),
              IsOkAndHolds(ElementsAre(0, 1)));
  EXPECT_THAT(ToFloats(Of<uint8_t>(NumberType::kUint8, {255})),
              IsOkAndHolds(ElementsAre(255)));
  EXPECT_THAT(ToFloats(Of<int8_t>(NumberType::kInt8, {-1})),
              IsOkAndHolds(ElementsAre(-1)));
  EXPECT_THAT(ToFloats(Of<uint16_t>(NumberType::kUint16, {65535})),
              IsOkAndHolds(ElementsAre(65535)));
  EXPECT_THAT(ToFloats(Of<int16_t>(NumberType::kInt16, {-2})),
              IsOkAndHolds(ElementsAre(-2)));
  EXPECT_THAT(ToFloats(Of<uint32_t>(NumberType::kUint32, {3})),
              IsOkAndHolds(ElementsAre(3)));
  EXPECT_THAT(ToFloats(Of<int32_t>(NumberType::kInt32, {-4})),
              IsOkAndHolds(ElementsAre(-4)));
  EXPECT_THAT(ToFloats(Of<uint64_t>(NumberType::kUint64, {5})),
              IsOkAndHolds(ElementsAre(5)));
  EXPECT_THAT(ToFloats(Of<int64_t>(NumberType::kInt64, {-6})),
              IsOkAndHolds(ElementsAre(-6)));
  EXPECT_THAT(ToFloats(Of<uint16_t>(NumberType::kFloat16, {0x3e00})),
              IsOkAndHolds(ElementsAre(1.5F)));
  EXPECT_THAT(ToFloats(Of<float>(NumberType::kFloat32, {0.25F})),
              IsOkAndHolds(ElementsAre(0.25F)));
  EXPECT_THAT(ToFloats(Of<double>(NumberType::kFloat64, {0.125})),
              IsOkAndHolds(ElementsAre(0.125F)));
}

TEST(NumberArrayTest, ElementBeyondFloat32IsNamed) {
  EXPECT_THAT(ToFloats(Of<double>(NumberType::kFloat64, {1, 1e300})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("element 1 is inf")));
}

TEST(NumberArrayTest, WholeNumbersComeFromFloatsToo) {
  EXPECT_THAT(ToWholeNumbers(Of<float>(NumberType::kFloat32, {-1, 7})),
              IsOkAndHolds(ElementsAre(-1, 7)));
  EXPECT_THAT(ToWholeNumbers(Of<int64_t>(
                  NumberType::kInt64, {std::numeric_limits<int64_t>::max()})),
              IsOkAndHolds(ElementsAre(std::numeric_limits<int64_t>::max())));
}

TEST(NumberArrayTest, NumbersThatAreNotWholeAreNamed) {
  for (const double wrong :
       {0.5, 1e19, -1e19, std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(ToWholeNumbers(Of<double>(NumberType::kFloat64, {0, wrong})),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("element 1 is ")));
  }
  EXPECT_THAT(ToWholeNumbers(Of<uint64_t>(NumberType::kUint64, {1ULL << 63})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(NumberArrayTest, TypesHaveNumPysNamesAndSizes) {
  EXPECT_STREQ(NameOf(NumberType::kFloat16), "float16");
  EXPECT_EQ(SizeOf(NumberType::kFloat16), 2U);
  EXPECT_STREQ(NameOf(NumberType::kInt64), "int64");
  EXPECT_EQ(SizeOf(NumberType::kInt64), 8U);
  EXPECT_EQ(ShapeText({2, 3}), "2 x 3");
  EXPECT_EQ(Of<float>(NumberType::kFloat32, {1, 2, 3}).count(), 3);
}

}  // namespace
}  // namespace lockstep::worker
