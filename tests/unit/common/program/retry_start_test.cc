#include "common/program/retry_start.h"

#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

// Fails with `error` this number of times, then returns 7.
struct Starter {
  absl::Status error;
  int failures = 0;
  int calls = 0;
  int told = 0;
  absl::Duration waited = {};

  absl::StatusOr<int> Run() {
    return RetryStart(
        [this]() -> absl::StatusOr<int> {
          if (calls++ < failures) return error;
          return 7;
        },
        [this](const absl::Status&) { ++told; },
        [this](absl::Duration pause) { waited += pause; });
  }
};

TEST(RetryStartTest, PortThatBecomesFreeIsTaken) {
  Starter starter = {absl::UnavailableError("taken"), 3};
  EXPECT_THAT(starter.Run(), IsOkAndHolds(7));
  EXPECT_EQ(starter.told, 1);
  EXPECT_EQ(starter.waited, 3 * kPortPause);
}

TEST(RetryStartTest, PortThatStaysTakenIsGivenUp) {
  Starter starter = {absl::UnavailableError("taken"), 1000};
  EXPECT_THAT(starter.Run(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(starter.waited, kPortPatience);
  EXPECT_EQ(starter.told, 1);
}

TEST(RetryStartTest, OtherErrorsAreNotRepeated) {
  Starter starter = {absl::InvalidArgumentError("no address"), 1};
  EXPECT_THAT(starter.Run(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(starter.calls, 1);
  EXPECT_EQ(starter.told, 0);
}

}  // namespace
}  // namespace lockstep
