#include "common/base/status_macros.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

absl::Status After(const absl::Status& first, int& calls) {
  LOCKSTEP_RETURN_IF_ERROR((++calls, first));
  ++calls;
  return absl::OkStatus();
}

absl::StatusOr<int> Sum(absl::StatusOr<int> a, absl::StatusOr<int> b) {
  LOCKSTEP_ASSIGN_OR_RETURN(int sum, std::move(a));
  LOCKSTEP_ASSIGN_OR_RETURN(const int other, std::move(b));
  return sum + other;
}

TEST(StatusMacrosTest, FunctionGoesOnAfterSuccessAlone) {
  int calls = 0;
  EXPECT_OK(After(absl::OkStatus(), calls));
  EXPECT_EQ(calls, 2);  // the expression is evaluated once
  EXPECT_THAT(After(absl::NotFoundError("none"), calls),
              StatusIs(absl::StatusCode::kNotFound, "none"));
  EXPECT_EQ(calls, 3);
}

TEST(StatusMacrosTest, ValueIsAssignedOrItsStatusReturned) {
  EXPECT_THAT(Sum(1, 2), IsOkAndHolds(3));
  EXPECT_THAT(Sum(absl::InternalError("first"), absl::InternalError("second")),
              StatusIs(absl::StatusCode::kInternal, "first"));
  EXPECT_THAT(Sum(1, absl::InternalError("second")),
              StatusIs(absl::StatusCode::kInternal, "second"));
}

TEST(StatusMacrosTest, ValueMayBeOneThatCanOnlyBeMoved) {
  const auto take = []() -> absl::StatusOr<int> {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::unique_ptr<int> moved,
        absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(7)));
    return *moved;
  };
  EXPECT_THAT(take(), IsOkAndHolds(7));
}

}  // namespace
}  // namespace lockstep
