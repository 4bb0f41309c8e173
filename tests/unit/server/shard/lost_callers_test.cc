#include "server/shard/lost_callers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::UnixEpoch();
const absl::Time kLater = kNow + LostCallers::kGrace;

TEST(LostCallersTest, WorkersWhoseStreamHasEndedAreLost) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Called(2, 3, 100);
  callers.Called(3, 4, 100);
  EXPECT_THAT(callers.Workers(kLater), IsEmpty());

  callers.Ended(1, kNow);
  callers.Ended(2, kNow);

  EXPECT_THAT(callers.Workers(kLater), ElementsAre(3, 5));
}

TEST(LostCallersTest, OnlyACallAfterTheEndShowsThatTheWorkerLives) {
  struct Case {
    uint64_t stream;  // of the call; 0: an RPC of its own
    bool lives;
  };
  // On stream 1 a call that arrived before the end may be served after it.
  for (const Case& c : {Case{0, true}, Case{1, false}, Case{2, true}}) {
    LostCallers callers;
    callers.Called(1, 5, 100);
    callers.Ended(1, kNow);

    callers.Called(c.stream, 5, 100);

    EXPECT_EQ(callers.Workers(kLater).empty(), c.lives) << c.stream;
  }
}

TEST(LostCallersTest, StreamBeforeTheLastMayEnd) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Called(2, 5, 100);

  callers.Ended(1, kNow);

  EXPECT_THAT(callers.Workers(kLater), IsEmpty());
}

TEST(LostCallersTest, SuccessorIsNotLostAndItsPredecessorNoLongerCounts) {
  LostCallers callers;
  callers.Called(7, 5, 100);
  callers.Ended(7, kNow);

  callers.Called(4, 5, 200);
  callers.Called(8, 5, 100);
  callers.Ended(8, kNow);

  EXPECT_THAT(callers.Workers(kLater), IsEmpty());
}

TEST(LostCallersTest, WorkerWithoutAStreamIsNeverLost) {
  LostCallers callers;
  callers.Called(0, 5, 100);

  callers.Ended(0, kNow);

  EXPECT_THAT(callers.Workers(kLater), IsEmpty());
}

TEST(LostCallersTest, LiveWorkerHasTimeToCallAgain) {
  LostCallers callers;
  callers.Called(1, 5, 100);
  callers.Ended(1, kNow);

  EXPECT_THAT(callers.Workers(kLater - absl::Milliseconds(1)), IsEmpty());
  EXPECT_THAT(callers.Workers(kLater), ElementsAre(5));
}

TEST(LostCallersTest, StreamWithoutCallsMayEnd) {
  LostCallers callers;
  callers.Ended(9, kNow);
  EXPECT_THAT(callers.Workers(kLater), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
