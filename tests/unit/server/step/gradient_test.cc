#include "server/step/gradient.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::Dense;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::Shape;
using ::lockstep::testing::Sparse;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(CheckCompatibleTest, UnknownDimensionsMatchAnyLength) {
  const struct {
    PartialShape declared;
    Shape shape;
    bool compatible;
  } cases[] = {
      {std::nullopt, {}, true},     {std::nullopt, {2, 3}, true},
      {Shape{}, {}, true},          {Shape{}, {1}, false},
      {Shape{3, 2}, {3, 2}, true},  {Shape{3, 2}, {2, 2}, false},
      {Shape{3, 2}, {3}, false},    {Shape{3, 2}, {3, 2, 1}, false},
      {Shape{-1, 2}, {7, 2}, true}, {Shape{-1, 2}, {7, 3}, false},
      {Shape{-1}, {0}, true},       {Shape{-1}, {}, false},
  };
  for (const auto& c : cases) {
    const absl::Status status = CheckCompatible(c.declared, c.shape);
    EXPECT_EQ(status.ok(), c.compatible) << status;
  }
}

TEST(CheckCompatibleTest, MessageNamesBothShapes) {
  EXPECT_THAT(CheckCompatible(Shape{-1, 2}, Shape{7, 3}),
              StatusIs(kInvalid, ::testing::AllOf(HasSubstr("[7,3]"),
                                                  HasSubstr("[-1,2]"))));
}

TEST(CheckFormTest, AcceptsWhatIsATensor) {
  EXPECT_THAT(CheckForm(DType::kFloat32, Dense({2, 2}, {1, 2, 3, 4})), IsOk());
  EXPECT_THAT(CheckForm(DType::kFloat32, Dense({}, {1})), IsOk());
  EXPECT_THAT(CheckForm(DType::kFloat32, Dense({0, 5}, {})), IsOk());
  EXPECT_THAT(CheckForm(DType::kFloat32, Sparse({1}, {1, 2}, {1, 2})), IsOk());
}

TEST(CheckFormTest, RefusesAnotherElementType) {
  EXPECT_THAT(
      CheckForm(DType::kFloat64, Dense({1}, {1})),
      StatusIs(kInvalid, HasSubstr("dtype is float32, must be float64")));
  EXPECT_THAT(CheckForm(DType::kFloat16, Sparse({1}, {1}, {1})),
              StatusIs(kInvalid));
  const Dense no_type({}, {1}, static_cast<DType>(77));
  EXPECT_THAT(CheckForm(static_cast<DType>(77), no_type), StatusIs(kInvalid));
}

TEST(CheckFormTest, RefusesLengthsThatAreNotThoseOfTheShape) {
  Dense truncated({2}, {1, 2});
  truncated.values.pop_back();
  EXPECT_THAT(CheckForm(DType::kFloat32, truncated),
              StatusIs(kInvalid, HasSubstr("7 bytes")));
  EXPECT_THAT(CheckForm(DType::kFloat32, Dense({2}, {1, 2, 3})),
              StatusIs(kInvalid));
  EXPECT_THAT(CheckForm(DType::kFloat32, Dense({0}, {1})), StatusIs(kInvalid));
  EXPECT_THAT(CheckForm(DType::kFloat32, Sparse({1}, {1, 2}, {1})),
              StatusIs(kInvalid));
}

TEST(CheckFormTest, RefusesNegativeAndHugeDimensions) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const Shape& shape :
       {Shape{-1}, Shape{-1, -1}, Shape{0, -1}, Shape{kHuge},
        Shape{kHuge, kHuge}, Shape{int64_t{1} << 62, 4, 1}}) {
    EXPECT_THAT(CheckForm(DType::kFloat32, Dense(shape, {})),
                StatusIs(kInvalid));
  }
  EXPECT_THAT(CheckForm(DType::kFloat32, Dense({kHuge, kHuge, 0}, {})), IsOk());
}

}  // namespace
}  // namespace lockstep::server
