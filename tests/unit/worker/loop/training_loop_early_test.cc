// Passes that begin while the gradients before them are still under way.

#include <atomic>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/loop/scripted_client.h"
#include "worker/loop/training_loop.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::kFinished;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;

// Selects the worker, for the attempt of the same number, from the start.
Token Selected(int64_t step, int64_t came_of) {
  return {Token::Kind::kToken, step, 0, came_of, step};
}

class EarlyPassesTest : public testing::TrainingLoopFixture {
 protected:
  EarlyPassesTest() {
    source_.may_begin_early = true;
    source_.layers = 1;
    client_.pushes.answers.assign(9, PushCounts{1, 0, 0, 0});
  }
};

TEST_F(EarlyPassesTest, NextPassBeginsWhileGradientsAreUnderWay) {
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4), Selected(6, 5),
                            kFinished};

  EXPECT_THAT(Run(kNoBackups), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 4", "ready 0",
                          "send 4 attempt 4", "await 0", "push 4 attempt 4",
                          "token after 4 attempt 4", "pull 5", "ready 0",
                          "send 5 attempt 5", "await 0", "push 5 attempt 5",
                          "token after 5 attempt 5", "pull 6", "ready 0",
                          "send 6 attempt 6", "await 0", "push 6 attempt 6",
                          "token after 6 attempt 6"));
  EXPECT_THAT(source_.batches, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(source_.early_steps, ElementsAre(5, 6, 7));
  EXPECT_EQ(meter_.Get().accepted, 3);
  EXPECT_EQ(meter_.Get().passes, 3);
}

TEST_F(EarlyPassesTest, NoneBeginsWhereAnswersBringNoValues) {
  client_.brings_values = false;
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4), kFinished};

  EXPECT_THAT(Run(kNoBackups), IsOk());

  EXPECT_THAT(source_.early_steps, ElementsAre());
  EXPECT_THAT(source_.batches, ElementsAre(4, 5));
}

TEST_F(EarlyPassesTest, NoneBeginsBehindTheEndOfTraining) {
  TrainingLoop::Options options = kNoBackups;
  options.train_steps = 6;
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4), kFinished};

  EXPECT_THAT(Run(options), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(4, 5));
  EXPECT_THAT(source_.early_steps, ElementsAre(5));
}

TEST_F(EarlyPassesTest, PassWhoseValuesDoNotCountIsComputedAgain) {
  const Token redone{Token::Kind::kToken, 5, 0, /*attempt=*/7, 5};
  const Token behind = Selected(3, 0);
  for (const Token& token : {redone, behind}) {
    client_.tokens.answers = {Selected(4, 0), token};
    client_.calls.clear();
    source_.batches.clear();

    EXPECT_THAT(Run(kNoBackups), StatusIs(absl::StatusCode::kCancelled));

    ASSERT_GT(client_.calls.size(), 8u);
    EXPECT_EQ(client_.calls[4], "await 0");
    EXPECT_EQ(client_.calls[6], "token after 4 attempt 4");
    EXPECT_EQ(client_.calls[7], "pull " + std::to_string(token.step));
    EXPECT_EQ(client_.calls[8], "ready 0");
    EXPECT_THAT(source_.batches, ElementsAre(4, 5, token.step, token.step + 1));
  }
}

TEST_F(EarlyPassesTest, RedoPushesTheGradientOfThePassBefore) {
  client_.tokens.answers = {Selected(4, 0), Token{Token::Kind::kRedo, 0, 0, 6},
                            Selected(5, 6), kFinished};
  source_.end = 6;

  EXPECT_THAT(Run(kNoBackups), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 4", "ready 0",
                          "send 4 attempt 4", "await 0", "push 4 attempt 4",
                          "token after 4 attempt 4", "push 4 attempt 6",
                          "token after 4 attempt 6", "pull 5", "ready 0",
                          "send 5 attempt 5", "push 5 attempt 5",
                          "token after 5 attempt 5"));
  EXPECT_THAT(source_.batches, ElementsAre(4, 5, 5));
}

TEST_F(EarlyPassesTest, ValuesThatDoNotComeArePulled) {
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4), kFinished};
  client_.awaited = absl::AbortedError("sent elsewhere");

  EXPECT_THAT(Run(kNoBackups), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 4", "ready 0",
                          "send 4 attempt 4", "await 0", "push 4 attempt 4",
                          "token after 4 attempt 4", "pull 5", "ready 0",
                          "send 5 attempt 5", "await 0", "push 5 attempt 5",
                          "token after 5 attempt 5"));
  EXPECT_THAT(source_.batches, ElementsAre(4, 5, 5, 6));
}

TEST_F(EarlyPassesTest, EndOfInputEndsTheLoopOnceTheLastGradientCounts) {
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4)};
  source_.end = 5;

  EXPECT_THAT(Run(kNoBackups), StatusIs(absl::StatusCode::kOutOfRange));

  EXPECT_EQ(meter_.Get().accepted, 1);
}

TEST_F(EarlyPassesTest, FailureOfThePassBeforeEndsTheLoop) {
  client_.tokens.answers = {Selected(4, 0)};
  client_.pushes.answers = {absl::InvalidArgumentError("NaN")};

  EXPECT_THAT(Run(kNoBackups),
              StatusIs(absl::StatusCode::kInvalidArgument, "NaN"));
}

TEST_F(EarlyPassesTest, WorkerThatLeavesBeginsNone) {
  std::atomic<bool> leaving = false;
  TrainingLoop::Options options = kNoBackups;
  options.leaving = &leaving;
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4), Selected(6, 5)};
  source_.before_layer = [&](int) { leaving = source_.batches.size() == 2; };

  EXPECT_THAT(Run(options), StatusIs(absl::StatusCode::kCancelled));

  EXPECT_THAT(source_.batches, ElementsAre(4, 5));
  EXPECT_EQ(meter_.Get().accepted, 2);
}

TEST_F(EarlyPassesTest, WorkerThatIsToldToLeaveMeanwhileDropsThePass) {
  std::atomic<bool> leaving = false;
  TrainingLoop::Options options = kNoBackups;
  options.leaving = &leaving;
  client_.tokens.answers = {Selected(4, 0), Selected(5, 4)};
  source_.at_begin = [&] { leaving = source_.batches.size() == 2; };

  EXPECT_THAT(Run(options), StatusIs(absl::StatusCode::kCancelled));

  EXPECT_EQ(client_.calls.back(), "token after 4 attempt 4");
  EXPECT_EQ(meter_.Get().accepted, 1);
}

TEST_F(EarlyPassesTest, WhereSomeMayBeLateNoneBeginsEarly) {
  client_.tokens.answers = {TokenFor(4), kFinished};
  client_.announcements.answers = {
      Announcement{Announcement::Decision::kSelected, 1}};

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(4));
}

}  // namespace
}  // namespace lockstep::worker
