#include "server/shard/lost_callers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LostCallersTest, WorkersWhoseStreamHasEndedAreLost) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Called(2, 3, 100);
  callers.Called(3, 4, 100);
  EXPECT_THAT(callers.Workers(), IsEmpty());

  callers.Ended(1);
  callers.Ended(2);

  EXPECT_THAT(callers.Workers(), ElementsAre(3, 5));
}

TEST(LostCallersTest, WorkerThatCallsOnALaterStreamIsNotLost) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Ended(1);

  callers.Called(2, 5, 100);

  EXPECT_THAT(callers.Workers(), IsEmpty());
}

TEST(LostCallersTest, StreamBeforeTheLastMayEnd) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Called(2, 5, 100);

  callers.Ended(1);

  EXPECT_THAT(callers.Workers(), IsEmpty());
}

TEST(LostCallersTest, CallThatIsServedAfterItsStreamHasEndedBringsNobodyBack) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Ended(1);

  callers.Called(1, 5, 100);

  EXPECT_THAT(callers.Workers(), ElementsAre(5));
}

TEST(LostCallersTest, SuccessorIsNotLostAndItsPredecessorNoLongerCounts) {
  LostCallers callers;
  callers.Called(7, 5, 100);
  callers.Ended(7);

  callers.Called(4, 5, 200);
  callers.Called(8, 5, 100);
  callers.Ended(8);

  EXPECT_THAT(callers.Workers(), IsEmpty());
}

TEST(LostCallersTest, CallsOfTheirOwnSayNothing) {
  LostCallers callers;
  callers.Called(0, 5, 100);
  callers.Ended(0);
  EXPECT_THAT(callers.Workers(), IsEmpty());

  callers.Called(1, 5, 100);
  callers.Ended(1);
  callers.Called(0, 5, 100);

  EXPECT_THAT(callers.Workers(), ElementsAre(5));
}

TEST(LostCallersTest, StreamThatNobodyCalledOnMayEnd) {
  LostCallers callers;
  callers.Ended(9);
  EXPECT_THAT(callers.Workers(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
