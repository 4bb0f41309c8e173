#include "worker/models/model_limits.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(CheckModelInputTest, OrdinaryImagesPass) {
  EXPECT_THAT(CheckModelInput({28, 28, 1, 10}), IsOk());
  EXPECT_THAT(CheckModelInput({1, 1, 1, 1}), IsOk());
}

TEST(CheckModelInputTest, EachFieldIsNamed) {
  EXPECT_THAT(
      CheckModelInput({0, 1, 1, 1}),
      StatusIs(kInvalid, "height of the images must be in [1, 65536], got 0"));
  EXPECT_THAT(CheckModelInput({1, -5, 1, 1}),
              StatusIs(kInvalid, StartsWith("width of the images")));
  EXPECT_THAT(CheckModelInput({1, 1, 5000, 1}),
              StatusIs(kInvalid, StartsWith("channels of the images")));
  EXPECT_THAT(CheckModelInput({1, 1, 1, int64_t{1} << 40}),
              StatusIs(kInvalid, StartsWith("number of classes")));
}

TEST(CheckModelInputTest, ProductIsBounded) {
  EXPECT_THAT(CheckModelInput({1 << 16, 1 << 16, 1, 2}),
              StatusIs(kInvalid, StartsWith("height * width * channels")));
}

TEST(CheckModelTypeTest, OnlyFloatsTrain) {
  EXPECT_THAT(CheckModelType(ElementType::kFloat32), IsOk());
  EXPECT_THAT(CheckModelType(ElementType::kFloat64), IsOk());
  EXPECT_THAT(CheckModelType(ElementType::kUint8), StatusIs(kInvalid));
}

TEST(CheckVariableSizeTest, ElementsAreCountedWithoutOverflow) {
  EXPECT_THAT(CheckVariableSize({"w", {1 << 15, 1 << 16}, DType::kFloat32, {}}),
              IsOk());
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {(1 << 15) + 1, 1 << 16}, {int64_t{1} << 40, int64_t{1} << 40}}) {
    EXPECT_THAT(CheckVariableSize({"w", shape, DType::kFloat32, {}}),
                StatusIs(kInvalid, StartsWith("variable w would be [")));
  }
}

TEST(CheckLayerSizesTest, SizesArePositiveAndBounded) {
  EXPECT_THAT(CheckLayerSizes("model.hidden_units", {}), IsOk());
  EXPECT_THAT(CheckLayerSizes("model.hidden_units", {1, 1 << 20}), IsOk());
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{1} << 21}) {
    EXPECT_THAT(CheckLayerSizes("model.hidden_units", {10, size}),
                StatusIs(kInvalid, HasSubstr("model.hidden_units must be in "
                                             "[1, 1048576], got ")));
  }
}

TEST(CheckLayerSizesTest, NumberOfLayersIsBounded) {
  EXPECT_THAT(
      CheckLayerSizes("model.conv_filters", std::vector<int64_t>(65, 1)),
      StatusIs(kInvalid, HasSubstr("at most 64 entries, got 65")));
}

TEST(CheckGivenTest, EmptyFieldIsNamedWithItsKind) {
  EXPECT_THAT(CheckGiven("mlp", "model.hidden_units", {5}), IsOk());
  EXPECT_THAT(CheckGiven("mlp", "model.hidden_units", {}),
              StatusIs(kInvalid, HasSubstr("at least one entry for model.kind "
                                           "\"mlp\"")));
}

TEST(CheckNotGivenTest, FieldWithoutMeaningIsNamedWithItsKind) {
  EXPECT_THAT(CheckNotGiven("mlp", "model.conv_filters", {}), IsOk());
  EXPECT_THAT(CheckNotGiven("mlp", "model.conv_filters", {5}),
              StatusIs(kInvalid, HasSubstr("must be left out for model.kind "
                                           "\"mlp\", got 1 entries")));
}

TEST(CheckKernelSizeTest, KernelHasACentre) {
  for (const int64_t size : {1, 3, 63}) {
    EXPECT_THAT(CheckKernelSize(size), IsOk());
  }
  for (const int64_t size : {-3, 0, 2, 64, 65}) {
    EXPECT_THAT(CheckKernelSize(size),
                StatusIs(kInvalid, HasSubstr("model.kernel_size must be odd")));
  }
}

}  // namespace
}  // namespace lockstep::worker
