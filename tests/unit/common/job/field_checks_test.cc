#include "common/job/field_checks.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(FieldChecksTest, MessageNamesFieldValueAndRange) {
  EXPECT_THAT(CheckInt("x", 9, 1, 5),
              StatusIs(kInvalid, "x is 9, but must be from 1 to 5"));
  EXPECT_THAT(CheckInt("x", 0, 1),
              StatusIs(kInvalid, "x is 0, but must be 1 or more"));
  EXPECT_THAT(
      CheckPositive("x", 0),
      StatusIs(kInvalid, "x is 0, but must be a finite number above 0"));
  EXPECT_THAT(
      CheckAtLeastZero("x", -1),
      StatusIs(kInvalid, "x is -1, but must be a finite number of 0 or more"));
  EXPECT_THAT(CheckBelowOne("x", 1),
              StatusIs(kInvalid, "x is 1, but must be at least 0 and below 1"));
}

TEST(FieldChecksTest, NonFiniteNumberIsInNoRange) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(CheckPositive("x", value), StatusIs(kInvalid));
    EXPECT_THAT(CheckAtLeastZero("x", value), StatusIs(kInvalid));
    EXPECT_THAT(CheckBelowOne("x", value), StatusIs(kInvalid));
  }
}

TEST(FieldChecksTest, FieldOfAnElementIsNamedWithIt) {
  EXPECT_OK(Within(Element("list", 2), absl::OkStatus()));
  EXPECT_THAT(Within(Element("list", 2), CheckInt("x", 0, 1)),
              StatusIs(kInvalid, "list[2].x is 0, but must be 1 or more"));
}

}  // namespace
}  // namespace lockstep
