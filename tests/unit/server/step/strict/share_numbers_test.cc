#include "server/step/strict/share_numbers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// The pass `pass` of a worker, which computed `number`.
Pass PassIn(int worker, int64_t pass, int number = 0) {
  return {worker, 1, 0, pass, number};
}

class ShareNumbersTest : public ::testing::Test {
 protected:
  // The worker delivers the number that it took after pass `ended`.
  void Deliver(int worker, int64_t ended, int number) {
    EXPECT_TRUE(numbers_.Claim(PassIn(worker, ended + 1, number)));
    numbers_.Finish(PassIn(worker, ended + 1, number));
  }

  ShareNumbers numbers_{3};
};

TEST_F(ShareNumbersTest, FreeNumbersAreHandedOutInTheirOrder) {
  EXPECT_THAT(numbers_.Take(PassIn(4, 0)), Optional(0));
  EXPECT_THAT(numbers_.Take(PassIn(0, 0)), Optional(1));
  Deliver(0, 0, 1);
  EXPECT_THAT(numbers_.Take(PassIn(0, 1)), Optional(2));
}

TEST_F(ShareNumbersTest, SameQuestionHasTheSameAnswer) {
  EXPECT_THAT(numbers_.Take(PassIn(0, 0)), Optional(0));
  EXPECT_THAT(numbers_.Take(PassIn(1, 0)), Optional(1));

  EXPECT_THAT(numbers_.Take(PassIn(0, 0)), Optional(0));
  EXPECT_THAT(numbers_.Take(PassIn(1, 0)), Optional(1));
}

TEST_F(ShareNumbersTest, IdleWorkerRepeatsTheOldestNumberThatIsOut) {
  for (int worker = 0; worker < 3; ++worker) numbers_.Take(PassIn(worker, 0));
  Deliver(2, 0, 2);

  EXPECT_THAT(numbers_.Take(PassIn(2, 1)), Optional(0));
  EXPECT_THAT(numbers_.Take(PassIn(3, 0)), Optional(1));  // has one pass only
  EXPECT_THAT(numbers_.Take(PassIn(4, 0)), Optional(0));
}

TEST_F(ShareNumbersTest, NumberIsComputedByALimitedNumberOfWorkers) {
  ShareNumbers one(1);
  for (int worker = 0; worker < static_cast<int>(ShareNumbers::kMaxCopies);
       ++worker) {
    EXPECT_THAT(one.Take(PassIn(worker, 0)), Optional(0));
  }
  EXPECT_THAT(one.Take(PassIn(9, 0)), Eq(std::nullopt));
}

TEST_F(ShareNumbersTest, FirstResultCountsAndTheOtherIsNotNeeded) {
  ShareNumbers one(1);
  one.Take(PassIn(0, 0));
  one.Take(PassIn(1, 0));

  EXPECT_TRUE(one.Claim(PassIn(1, 1)));
  one.Finish(PassIn(1, 1));

  EXPECT_TRUE(one.IsDone(0));
  EXPECT_FALSE(one.Claim(PassIn(0, 1)));
  EXPECT_TRUE(one.IsClaimed(PassIn(0, 1)));  // its number is done
}

TEST_F(ShareNumbersTest, NumberThatWasNotAnnouncedIsNotDone) {
  numbers_.Take(PassIn(0, 0));

  numbers_.Finish(PassIn(0, 1));

  EXPECT_FALSE(numbers_.IsDone(0));
  EXPECT_FALSE(numbers_.IsClaimed(PassIn(0, 1)));
}

TEST_F(ShareNumbersTest, NumberOfADeadWorkerIsFreeAtOnce) {
  numbers_.Take(PassIn(0, 0));
  numbers_.Take(PassIn(1, 0));
  numbers_.Claim(PassIn(0, 1));

  EXPECT_TRUE(numbers_.Release(0, 1));

  EXPECT_FALSE(numbers_.Release(0, 1));
  EXPECT_THAT(numbers_.Take(PassIn(2, 0)), Optional(0));
}

TEST_F(ShareNumbersTest, WorkerThatGoesOnWithoutAResultGivesItsNumberBack) {
  numbers_.Take(PassIn(0, 0));
  numbers_.Claim(PassIn(0, 1));

  EXPECT_THAT(numbers_.Take(PassIn(0, 1)), Optional(0));
}

TEST_F(ShareNumbersTest, NewAttemptKeepsOnlyThePassesThatHaveNotDelivered) {
  for (int worker = 0; worker < 3; ++worker) numbers_.Take(PassIn(worker, 0));
  Deliver(0, 0, 0);
  numbers_.Claim(PassIn(1, 1, 1));

  numbers_.Restart();

  EXPECT_FALSE(numbers_.IsDone(0));
  EXPECT_FALSE(numbers_.IsClaimed(PassIn(1, 1, 1)));
  EXPECT_THAT(numbers_.Take(PassIn(0, 1)), Optional(0));
  EXPECT_THAT(numbers_.Take(PassIn(1, 1)), Optional(1));
  EXPECT_THAT(numbers_.Take(PassIn(5, 0)), Optional(2));  // a duplicate of 2's
}

TEST_F(ShareNumbersTest, PassOfAnEarlierProcessIsTakenAsItIs) {
  EXPECT_TRUE(numbers_.Claim(PassIn(3, 7, 2)));
  numbers_.Finish(PassIn(3, 7, 2));

  EXPECT_TRUE(numbers_.IsDone(2));
}

TEST_F(ShareNumbersTest, NextStepBeginsWithAllNumbers) {
  numbers_.Take(PassIn(0, 0));
  Deliver(0, 0, 0);

  numbers_.Reset();

  EXPECT_FALSE(numbers_.IsDone(0));
  EXPECT_THAT(numbers_.Take(PassIn(0, 1)), Optional(0));
}

}  // namespace
}  // namespace lockstep::server
