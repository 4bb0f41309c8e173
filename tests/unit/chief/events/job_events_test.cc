#include "chief/events/job_events.h"

#include <variant>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

// An absl::StatusOr that is given nothing holds an error.
TEST(JobEventsTest, AnswersAreSuccessesUnlessTheySayOtherwise) {
  EXPECT_OK(Started().status);
  EXPECT_OK(TakeAnswered().status);
  EXPECT_OK(CommitAnswered().status);
  EXPECT_OK(ExpireAnswered().answer);
  EXPECT_OK(ReplaceAnswered().answer);
  EXPECT_OK(TokensClosed().status);
  EXPECT_OK(SnapshotBegun().status);
  EXPECT_OK(SnapshotDone().status);
  EXPECT_OK(SavedChecked().whole);
  EXPECT_OK(RecoveryDone().outcome);
}

}  // namespace
}  // namespace lockstep::chief
