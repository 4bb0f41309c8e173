#include "common/base/passing_error.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(PassingErrorTest, AbsentServerAndMissingAnswerPass) {
  EXPECT_TRUE(IsPassing(absl::UnavailableError("")));
  EXPECT_TRUE(IsPassing(absl::DeadlineExceededError("")));
  EXPECT_FALSE(IsPassing(absl::OkStatus()));
  EXPECT_FALSE(IsPassing(absl::AbortedError("")));
  EXPECT_FALSE(IsPassing(absl::CancelledError("")));
  EXPECT_FALSE(IsPassing(absl::FailedPreconditionError("")));
}

}  // namespace
}  // namespace lockstep
