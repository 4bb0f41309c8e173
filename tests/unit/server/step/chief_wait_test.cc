#include "server/step/chief_wait.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

auto IsAnswer(uint64_t ticket, bool prepared) {
  return AllOf(Field("ticket", &TakeAnswer::ticket, ticket),
               Field("prepared", &TakeAnswer::prepared, prepared));
}

class ChiefWaitTest : public ::testing::Test {
 protected:
  void AnswerPrepared() { wait_.Answer({.prepared = true}, answers_); }

  ChiefWait wait_;
  ShardAnswers answers_;
};

TEST_F(ChiefWaitTest, WaitIsAnsweredOnce) {
  wait_.File(7, answers_);
  EXPECT_TRUE(wait_.is_filed());

  AnswerPrepared();
  AnswerPrepared();

  EXPECT_FALSE(wait_.is_filed());
  EXPECT_THAT(answers_.takes, ElementsAre(IsAnswer(7, true)));
}

TEST_F(ChiefWaitTest, NewerWaitWithdrawsTheOlderOne) {
  wait_.File(7, answers_);
  wait_.File(8, answers_);
  EXPECT_THAT(answers_.takes, ElementsAre(IsAnswer(7, false)));
  EXPECT_TRUE(answers_.takes[0].status.ok());

  AnswerPrepared();

  EXPECT_THAT(answers_.takes,
              ElementsAre(IsAnswer(7, false), IsAnswer(8, true)));
}

TEST_F(ChiefWaitTest, NothingIsAnsweredWhereNothingIsFiled) {
  AnswerPrepared();

  EXPECT_THAT(answers_.takes, IsEmpty());
}

// The call that filed it may end after its successor has come.
TEST_F(ChiefWaitTest, CancellingEndsOnlyTheWaitOfThatTicket) {
  wait_.File(8, answers_);
  wait_.Cancel(7);
  EXPECT_TRUE(wait_.is_filed());
  wait_.Cancel(8);
  EXPECT_FALSE(wait_.is_filed());

  wait_.File(9, answers_);
  wait_.Forget();
  AnswerPrepared();
  EXPECT_THAT(answers_.takes, IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
