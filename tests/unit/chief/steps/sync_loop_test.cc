#include "chief/steps/sync_loop.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;

MATCHER(AsksNothing, "asks nothing") {
  return arg.takes.empty() && !arg.commit.has_value();
}
MATCHER_P2(Commits, step, attempt, "commits") {
  return arg.takes.empty() && arg.commit.has_value() &&
         arg.commit->step == step && arg.commit->attempt == attempt;
}
MATCHER_P(Takes, servers, "takes from the servers") {
  return arg.takes == servers && !arg.commit.has_value();
}

std::vector<int> Only(int server) { return {server}; }

// Three servers, at step 4.
class SyncLoopTest : public ::testing::Test {
 protected:
  SyncLoopTest() {
    EXPECT_TRUE(loop_.between_steps());
    EXPECT_THAT(loop_.Begin(), Takes(std::vector<int>{0, 1, 2}));
    EXPECT_FALSE(loop_.between_steps());
  }

  SyncLoop loop_{{0, 1, 2}, 4};
};

TEST_F(SyncLoopTest, CommitComesOnceAllServersArePrepared) {
  EXPECT_THAT(loop_.OnPrepared(2, 4, 1), AsksNothing());
  EXPECT_THAT(loop_.OnPrepared(0, 4, 1), AsksNothing());
  EXPECT_THAT(loop_.Unprepared(), ElementsAre(1));

  EXPECT_THAT(loop_.OnPrepared(1, 4, 1), Commits(5, 1));

  EXPECT_EQ(loop_.step(), 4);
  EXPECT_FALSE(loop_.between_steps());
}

TEST_F(SyncLoopTest, CommittedStepIsTheNextOneToBegin) {
  for (int server : {0, 1, 2}) loop_.OnPrepared(server, 4, 1);

  loop_.OnCommitted(5);

  EXPECT_EQ(loop_.step(), 5);
  EXPECT_TRUE(loop_.between_steps());
  EXPECT_THAT(loop_.Begin(), Takes(std::vector<int>{0, 1, 2}));
  EXPECT_THAT(loop_.Unprepared(), ElementsAre(0, 1, 2));
  EXPECT_THAT(loop_.OnPrepared(0, 5, 1), AsksNothing());
}

TEST_F(SyncLoopTest, AnswersOfOtherStepsDoNotCount) {
  EXPECT_THAT(loop_.OnPrepared(0, 3, 1), AsksNothing());
  EXPECT_THAT(loop_.OnPrepared(0, 5, 1), AsksNothing());
  EXPECT_THAT(loop_.OnTakeAgain(0, 3), AsksNothing());

  EXPECT_THAT(loop_.Unprepared(), ElementsAre(0, 1, 2));
}

TEST_F(SyncLoopTest, RepeatedAnswerCountsOnce) {
  loop_.OnPrepared(0, 4, 1);
  loop_.OnPrepared(0, 4, 1);

  EXPECT_THAT(loop_.OnPrepared(0, 4, 1), AsksNothing());

  EXPECT_THAT(loop_.Unprepared(), ElementsAre(1, 2));
}

TEST_F(SyncLoopTest, TakeThatEndedWithoutAnAnswerIsAskedAgain) {
  EXPECT_THAT(loop_.OnTakeAgain(1, 4), Takes(Only(1)));

  loop_.OnPrepared(1, 4, 1);
  EXPECT_THAT(loop_.OnTakeAgain(1, 4), AsksNothing());
}

TEST_F(SyncLoopTest, ServerPreparedForAnOldSetIsTakenFromAgain) {
  loop_.OnPrepared(0, 4, 1);
  loop_.OnPrepared(1, 4, 2);

  EXPECT_THAT(loop_.OnPrepared(2, 4, 2), Takes(Only(0)));

  EXPECT_THAT(loop_.Unprepared(), ElementsAre(0));
  EXPECT_THAT(loop_.OnPrepared(0, 4, 2), Commits(5, 2));
}

TEST_F(SyncLoopTest, NewestSetWinsHoweverManyWerePreparedForTheOld) {
  loop_.OnPrepared(0, 4, 1);
  loop_.OnPrepared(1, 4, 1);

  EXPECT_THAT(loop_.OnPrepared(2, 4, 3), Takes(std::vector<int>{0, 1}));

  EXPECT_THAT(loop_.OnPrepared(0, 4, 3), AsksNothing());
  EXPECT_THAT(loop_.OnPrepared(1, 4, 4), Takes(std::vector<int>{0, 2}));
}

TEST_F(SyncLoopTest, RefusedCommitTakesFromAllAgain) {
  for (int server : {0, 1, 2}) loop_.OnPrepared(server, 4, 1);

  EXPECT_THAT(loop_.OnCommitRefused(), Takes(std::vector<int>{0, 1, 2}));

  EXPECT_EQ(loop_.step(), 4);
  for (int server : {0, 1}) loop_.OnPrepared(server, 4, 2);
  EXPECT_THAT(loop_.OnPrepared(2, 4, 2), Commits(5, 2));
}

TEST_F(SyncLoopTest, AnswersToACommitThatIsNotOutstandingDoNotCount) {
  EXPECT_THAT(loop_.OnCommitRefused(), AsksNothing());
  loop_.OnCommitted(5);
  EXPECT_EQ(loop_.step(), 4);
  for (int server : {0, 1, 2}) loop_.OnPrepared(server, 4, 1);

  loop_.OnCommitted(4);
  loop_.OnCommitted(6);
  EXPECT_FALSE(loop_.between_steps());
  EXPECT_THAT(loop_.OnPrepared(0, 4, 2), AsksNothing());

  loop_.OnCommitted(5);
  EXPECT_TRUE(loop_.between_steps());
  EXPECT_THAT(loop_.OnPrepared(0, 5, 1), AsksNothing());
}

TEST(SomeServersSyncLoopTest, ServersThatTakeNoPartAreNotAwaited) {
  SyncLoop loop({0, 2}, 4);

  EXPECT_THAT(loop.Begin(), Takes(std::vector<int>{0, 2}));
  EXPECT_THAT(loop.OnPrepared(0, 4, 1), AsksNothing());
  EXPECT_THAT(loop.OnPrepared(1, 4, 1), AsksNothing());

  EXPECT_THAT(loop.OnPrepared(2, 4, 1), Commits(5, 1));
}

TEST(OneServerSyncLoopTest, StepsThatTheServerCommittedAreSkipped) {
  SyncLoop loop({0}, 3);
  loop.OnCommittedByServer(9);
  EXPECT_EQ(loop.step(), 3);
  loop.Begin();

  loop.OnCommittedByServer(3);
  EXPECT_FALSE(loop.between_steps());
  loop.OnCommittedByServer(6);

  EXPECT_TRUE(loop.between_steps());
  EXPECT_EQ(loop.step(), 6);
  EXPECT_THAT(loop.Begin(), Takes(Only(0)));
  EXPECT_THAT(loop.OnPrepared(0, 3, 1), AsksNothing());
  EXPECT_THAT(loop.OnPrepared(0, 6, 1), Commits(7, 1));
}

TEST(OneServerSyncLoopTest, StepAfterStep) {
  SyncLoop loop({0}, 0);
  for (int64_t step = 0; step < 10; ++step) {
    EXPECT_THAT(loop.Begin(), Takes(Only(0)));
    EXPECT_THAT(loop.OnPrepared(0, step, 1), Commits(step + 1, 1));
    loop.OnCommitted(step + 1);
  }
  EXPECT_EQ(loop.step(), 10);
}

TEST_F(SyncLoopTest, NewAttemptAsksThoseAgainThatArePreparedForAnOlderOne) {
  loop_.OnPrepared(0, 4, 1);
  loop_.OnPrepared(2, 4, 2);

  EXPECT_THAT(loop_.OnAttempt(2), Takes(Only(0)));

  EXPECT_THAT(loop_.OnAttempt(2), AsksNothing());
  EXPECT_THAT(loop_.Unprepared(), ElementsAre(0, 1));
  loop_.OnPrepared(1, 4, 2);
  EXPECT_THAT(loop_.OnPrepared(0, 4, 2), Commits(5, 2));
  EXPECT_THAT(loop_.OnAttempt(3), AsksNothing());  // the commit is on its way
}

TEST_F(SyncLoopTest, NormIsThatOfTheSquaresOfAllServersAndAskedOfAll) {
  EXPECT_THAT(loop_.OnMeasured(2, 4, 1, 9), AsksNothing());
  EXPECT_THAT(loop_.OnMeasured(0, 4, 1, 16), AsksNothing());
  EXPECT_EQ(loop_.norm(), std::nullopt);

  EXPECT_THAT(loop_.OnMeasured(1, 4, 1, 0), Takes(std::vector<int>{0, 1, 2}));

  EXPECT_EQ(loop_.norm(), (MeanNorm{1, 5}));
  loop_.OnPrepared(0, 4, 1, 16);
  loop_.OnPrepared(1, 4, 1, 0);
  EXPECT_THAT(loop_.OnPrepared(2, 4, 1, 9), Commits(5, 1));
}

// 1 is lost beside 2^53, unless 1 + 1 come first.
TEST_F(SyncLoopTest, SquaresAreAddedInOrderOfServersWhateverTheArrival) {
  loop_.OnMeasured(2, 4, 1, 0x1p53);
  loop_.OnMeasured(1, 4, 1, 1);
  loop_.OnMeasured(0, 4, 1, 1);

  ASSERT_TRUE(loop_.norm().has_value());
  EXPECT_EQ(loop_.norm()->norm, std::sqrt(0x1p53 + 2));
}

TEST_F(SyncLoopTest,
       ChiefThatWasStartedAnewCountsServersThatAreUpdatedAlready) {
  loop_.OnPrepared(0, 4, 1, 16);
  loop_.OnPrepared(1, 4, 1);  // has no part

  EXPECT_THAT(loop_.OnMeasured(2, 4, 1, 9), Takes(Only(2)));

  EXPECT_EQ(loop_.norm(), (MeanNorm{1, 5}));
}

TEST_F(SyncLoopTest, NormOfAnAttemptThatWasGivenUpIsForgotten) {
  for (int server : {0, 1, 2}) loop_.OnMeasured(server, 4, 1, 3);
  ASSERT_TRUE(loop_.norm().has_value());

  EXPECT_THAT(loop_.OnAttempt(2), Takes(std::vector<int>{0, 1, 2}));
  EXPECT_EQ(loop_.norm(), std::nullopt);

  for (int server : {0, 1}) {
    EXPECT_THAT(loop_.OnMeasured(server, 4, 2, 12), AsksNothing());
  }
  EXPECT_THAT(loop_.OnMeasured(2, 4, 2, 12), Takes(std::vector<int>{0, 1, 2}));
  EXPECT_EQ(loop_.norm(), (MeanNorm{2, 6}));
}

TEST_F(SyncLoopTest, ServerOfANewerAttemptMakesTheOthersMeasureAnew) {
  loop_.OnMeasured(0, 4, 1, 3);
  loop_.OnMeasured(1, 4, 2, 3);

  EXPECT_THAT(loop_.OnMeasured(2, 4, 2, 3), Takes(Only(0)));

  EXPECT_EQ(loop_.norm(), std::nullopt);
}

TEST_F(SyncLoopTest, ServerThatHasNotHeardOfTheNormIsAskedAgain) {
  for (int server : {0, 1, 2}) loop_.OnMeasured(server, 4, 1, 3);

  EXPECT_THAT(loop_.OnMeasured(1, 4, 1, 3), Takes(Only(1)));
  EXPECT_THAT(loop_.OnTakeAgain(1, 4), Takes(Only(1)));
  loop_.OnPrepared(1, 4, 1, 3);
  EXPECT_THAT(loop_.OnTakeAgain(1, 4), AsksNothing());
}

TEST_F(SyncLoopTest, NextStepHasANormOfItsOwn) {
  for (int server : {0, 1, 2}) loop_.OnMeasured(server, 4, 1, 3);
  for (int server : {0, 1, 2}) loop_.OnPrepared(server, 4, 1, 3);
  loop_.OnCommitted(5);
  loop_.Begin();

  EXPECT_EQ(loop_.norm(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::chief
