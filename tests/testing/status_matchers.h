#ifndef LOCKSTEP_TESTS_TESTING_STATUS_MATCHERS_H_
#define LOCKSTEP_TESTS_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

// Matchers for absl::Status and absl::StatusOr, with the names and parameters
// of those in newer Abseil releases.
namespace lockstep::testing {

inline const absl::Status& GetStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).ok();
}

MATCHER_P(IsOkAndHolds, matcher, "is OK and holds a matching value") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(matcher, *arg, result_listener);
}

MATCHER_P(StatusIs, code, "has the status code") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).code() == code;
}

MATCHER_P2(StatusIs, code, message, "has the status code and a message") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).code() == code &&
         ::testing::ExplainMatchResult(
             message, std::string(GetStatus(arg).message()), result_listener);
}

}  // namespace lockstep::testing

#define ASSERT_OK(expr) ASSERT_THAT(expr, ::lockstep::testing::IsOk())
#define EXPECT_OK(expr) EXPECT_THAT(expr, ::lockstep::testing::IsOk())

#endif  // LOCKSTEP_TESTS_TESTING_STATUS_MATCHERS_H_
