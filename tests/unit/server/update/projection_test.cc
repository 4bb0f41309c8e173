#include "server/update/projection.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const VariableConstraint kNonNegative = {
    "", VariableConstraint::Kind::kNonNegative, 0};
const VariableConstraint kMaxNorm5 = {"", VariableConstraint::Kind::kMaxNorm,
                                      5};

template <typename T>
std::vector<T> Projected(const VariableConstraint& constraint, DType dtype,
                         int64_t row, std::vector<T> values) {
  Project(
      constraint, dtype, row,
      {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)});
  return values;
}

TEST(ProjectionTest, NegativeElementsBecomeZero) {
  EXPECT_THAT(Projected<float>(kNonNegative, DType::kFloat32, 1, {-1, 0, 2}),
              ElementsAre(0, 0, 2));
  EXPECT_THAT(Projected<double>(kNonNegative, DType::kFloat64, 3, {-1, 0, 2}),
              ElementsAre(0, 0, 2));
  const auto half = Projected<Float16>(kNonNegative, DType::kFloat16, 1,
                                       {ToFloat16(-1.f), ToFloat16(2.f)});
  EXPECT_EQ(ToFloat(half[0]), 0);
  EXPECT_EQ(ToFloat(half[1]), 2);
  const auto brain = Projected<BFloat16>(kNonNegative, DType::kBFloat16, 1,
                                         {ToBFloat16(-1.f), ToBFloat16(2.f)});
  EXPECT_EQ(ToFloat(brain[0]), 0);
  EXPECT_EQ(ToFloat(brain[1]), 2);
}

TEST(ProjectionTest, RowsThatAreTooLongAreScaledAndOthersStay) {
  EXPECT_THAT(
      Projected<double>(kMaxNorm5, DType::kFloat64, 2, {3, 4, 6, 8, -30, 40}),
      ElementsAre(3, 4, 3, 4, -3, 4));
}

TEST(ProjectionTest, ScaledBFloat16IsRoundedOnce) {
  // Above the middle of two bfloat16, but not of their float32.
  const VariableConstraint max_norm = {"", VariableConstraint::Kind::kMaxNorm,
                                       1 + 0x1p-8 + 0x1p-40};
  const auto row =
      Projected<BFloat16>(max_norm, DType::kBFloat16, 1, {ToBFloat16(2.f)});
  EXPECT_EQ(ToFloat(row[0]), 1 + 0x1p-7f);
}

TEST(ProjectionTest, ModeOfTheThreadDoesNotDecideTheBits) {
  const VariableConstraint max_norm1 = {"", VariableConstraint::Kind::kMaxNorm,
                                        1};
  const std::vector<float> long_row = {2, 2e-38f};  // its half is subnormal
  const auto plain = Projected<float>(max_norm1, DType::kFloat32, 2, long_row);
  std::vector<float> flushed;
  {
    const ScopedFlushDenormals flush;
    flushed = Projected<float>(max_norm1, DType::kFloat32, 2, long_row);
  }
  EXPECT_THAT(plain, ElementsAre(1, 0));
  EXPECT_THAT(flushed, ElementsAre(1, 0));
}

TEST(ProjectionTest, WithoutAConstraintValuesStay) {
  EXPECT_THAT(Projected<float>({}, DType::kFloat32, 2, {-30, 40}),
              ElementsAre(-30, 40));
}

TEST(ProjectionTest, NotANumberStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const VariableConstraint& constraint : {kNonNegative, kMaxNorm5}) {
    EXPECT_TRUE(std::isnan(
        Projected<float>(constraint, DType::kFloat32, 2, {nan, 4})[0]));
  }
}

TEST(ProjectionTest, RowIsWhatOneFirstIndexHas) {
  EXPECT_EQ(RowElements({"w", {4, 3, 2}, DType::kFloat32, {}}), 6);
  EXPECT_EQ(RowElements({"w", {4}, DType::kFloat32, {}}), 4);
  EXPECT_EQ(RowElements({"w", {}, DType::kFloat32, {}}), 1);
}

TEST(ProjectionTest, NormsNeedPartsOfWholeRows) {
  const VariableSpec variable = {"w", {4, 3}, DType::kFloat32, {}};
  EXPECT_OK(CheckProjection(kMaxNorm5, variable, 3, 6));
  EXPECT_OK(CheckProjection(kNonNegative, variable, 1, 4));
  for (const auto& [offset, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {1, 3}, {2, 4}}) {
    EXPECT_THAT(CheckProjection(kMaxNorm5, variable, offset, count),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("variable \"w\" needs parts of whole rows")))
        << offset;
  }
}

}  // namespace
}  // namespace lockstep::server
