#include "common/base/passing_error.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(PassingErrorTest, AbsentServerAndMissingAnswerPass) {
  EXPECT_TRUE(IsPassing(absl::UnavailableError("")));
  EXPECT_TRUE(IsPassing(absl::DeadlineExceededError("")));
  for (int code = 0; code <= 16; ++code) {
    const auto each = static_cast<absl::StatusCode>(code);
    EXPECT_EQ(IsPassing(absl::Status(each, "")),
              each == absl::StatusCode::kUnavailable ||
                  each == absl::StatusCode::kDeadlineExceeded)
        << each;
  }
}
}  // namespace
}  // namespace lockstep
