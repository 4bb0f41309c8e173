#include "chief/steps/stall_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr auto kNobody = std::nullopt;

// Two servers, sets of two.
class StallWatchTest : public ::testing::Test {
 protected:
  StallWatchTest() { watch_.Begin(); }

  static absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }
  std::optional<int> FindAt(int seconds) const {
    const auto found = watch_.Find(At(seconds), kPatience);
    if (!found.has_value()) return std::nullopt;
    return found->worker;
  }

  StallWatch watch_{2, 2};
};

TEST_F(StallWatchTest, MemberOfWhichNothingComesIsFoundWhenPatienceEnds) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {4, {{7, 4}}}, At(10));

  EXPECT_EQ(FindAt(11), kNobody);
  EXPECT_THAT(FindAt(12), Optional(3));
}

TEST_F(StallWatchTest, NoWorkerHoldsUpAStepThatLacksAnnouncements) {
  watch_.OnSet(1, {3}, At(10));
  watch_.OnArrivals(0, 1, {4, {}}, At(10));
  EXPECT_EQ(FindAt(100), kNobody);

  watch_.OnSet(1, {3, 7}, At(100));

  EXPECT_EQ(FindAt(101), kNobody);
  EXPECT_THAT(FindAt(102), Optional(3));
}

TEST_F(StallWatchTest, LostMemberIsFoundAtOnce) {
  watch_.OnSet(1, {3, 7}, At(10));

  watch_.OnArrivals(0, 1, {4, {{3, 4}}, /*lost=*/{7}}, At(10));

  EXPECT_EQ(watch_.Find(At(10), kPatience), (StallWatch::Found{7, true}));
}

TEST_F(StallWatchTest, LostMemberComesBeforeOneFurtherBehind) {
  watch_.OnSet(1, {3, 7}, At(10));

  watch_.OnArrivals(0, 1, {4, {{7, 2}}, /*lost=*/{7}}, At(10));

  EXPECT_EQ(watch_.Find(At(20), kPatience), (StallWatch::Found{7, true}));
}

TEST_F(StallWatchTest, LostMemberWhoseGradientsHaveArrivedHoldsUpNothing) {
  watch_.OnSet(1, {3, 7}, At(10));

  watch_.OnArrivals(0, 1, {4, {{7, 4}}, /*lost=*/{7}}, At(10));

  EXPECT_EQ(FindAt(11), kNobody);
}

TEST_F(StallWatchTest, LostWorkerOutsideOfTheSetHoldsUpNothing) {
  watch_.OnSet(1, {3, 7}, At(10));

  watch_.OnArrivals(0, 1, {4, {{7, 4}}, /*lost=*/{5}}, At(10));

  EXPECT_EQ(FindAt(11), kNobody);
}

TEST_F(StallWatchTest, LostMemberThatIsBackIsWaitedFor) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {4, {{3, 4}}, /*lost=*/{7}}, At(10));

  watch_.OnArrivals(0, 1, {4, {{3, 4}}}, At(11));

  EXPECT_EQ(FindAt(11), kNobody);
}

TEST_F(StallWatchTest, NewArrivalsStartThePatienceAnew) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {4, {{7, 4}}}, At(10));
  watch_.OnArrivals(0, 1, {4, {{3, 1}, {7, 4}}}, At(11));
  watch_.OnArrivals(0, 1, {4, {{3, 1}, {7, 4}}}, At(12));

  EXPECT_EQ(FindAt(12), kNobody);
  EXPECT_THAT(FindAt(13), Optional(3));
}

TEST_F(StallWatchTest, PartThatIsDoneIsProgressOfTheWorkerThatCompletedIt) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {4, {{3, 1}, {7, 2}}}, At(10));
  watch_.OnArrivals(0, 1, {3, {{7, 2}}}, At(11));  // 7 completed a part
  EXPECT_THAT(FindAt(12), Optional(3));

  watch_.OnArrivals(0, 1, {2, {{7, 1}}}, At(12));  // 3 completed another

  EXPECT_EQ(FindAt(13), kNobody);
}

// Worker 7 has more chunks ready, but waits for those in flight.
TEST_F(StallWatchTest, OfTwoThatStandStillTheOneBehindIsFound) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {8, {{7, 4}}}, At(10));
  watch_.OnArrivals(1, 1, {8, {{3, 1}, {7, 4}}}, At(10));

  EXPECT_THAT(FindAt(20), Optional(3));
}

TEST_F(StallWatchTest, OneServerThatLacksGradientsIsEnough) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {8, {{3, 0}, {7, 8}}}, At(10));
  watch_.OnPrepared(0);
  EXPECT_EQ(FindAt(20), kNobody);

  watch_.OnArrivals(1, 1, {1, {{3, 1}}}, At(20));

  EXPECT_THAT(FindAt(22), Optional(7));
}

// The server waits for a reader.
TEST_F(StallWatchTest, NoWorkerIsFoundOnceAllGradientsAreIn) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {0, {}}, At(10));

  EXPECT_EQ(FindAt(100), kNobody);
}

TEST_F(StallWatchTest, NewAttemptForgetsWhatWasHeard) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {4, {{7, 4}}}, At(10));

  watch_.OnSet(2, {5, 7}, At(20));
  EXPECT_EQ(watch_.attempt(), 2);
  watch_.OnArrivals(1, 1, {4, {{7, 4}}}, At(20));  // has not heard of it

  EXPECT_EQ(FindAt(30), kNobody);
  watch_.OnArrivals(1, 2, {4, {{7, 4}}}, At(30));
  EXPECT_THAT(FindAt(32), Optional(5));
}

TEST_F(StallWatchTest, NewStepForgetsEverything) {
  watch_.OnSet(1, {3, 7}, At(10));
  watch_.OnArrivals(0, 1, {4, {{7, 4}}}, At(10));

  watch_.Begin();

  EXPECT_EQ(watch_.attempt(), 0);
  EXPECT_EQ(FindAt(100), kNobody);
}

}  // namespace
}  // namespace lockstep::chief
