#include "server/shard/epoch_fence.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

// A server that follows the chief 20 in epoch 5.
EpochFence Following() {
  EpochFence fence(2);
  fence.Follow(5, 20);
  return fence;
}

TEST(EpochFenceTest, NewestChiefAloneIsFollowed) {
  struct Case {
    uint64_t epoch;
    uint64_t chief;
    absl::StatusCode followed;
    absl::StatusCode may_follow;
  };
  const std::vector<Case> cases = {
      {5, 20, kOk, kOk},
      {5, 21, kAborted, kAborted},  // drew the same number elsewhere
      {5, 0, kAborted, kAborted},   // sends no incarnation
      {4, 20, kAborted, kAborted},  // its own older epoch
      {4, 21, kAborted, kAborted},  // an older chief
      {0, 20, kAborted, kAborted},  // has taken none
      {6, 20, kUnavailable, kOk},   // has to take over first
      {6, 21, kUnavailable, kOk},   // likewise
      {5 + kLongestEpochLead, 21, kUnavailable, kOk},
      {6 + kLongestEpochLead, 21, kUnavailable, kInvalid},  // never drawn
      {kLargestEpoch, 21, kUnavailable, kInvalid},
  };
  const EpochFence fence = Following();
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat("epoch ", c.epoch, ", chief ", c.chief));
    EXPECT_EQ(fence.CheckFollowed(c.epoch, c.chief).code(), c.followed);
    EXPECT_EQ(fence.CheckMayFollow(c.epoch, c.chief).code(), c.may_follow);
  }
}

TEST(EpochFenceTest, EveryDrawIsNewerThanAllBefore) {
  struct Case {
    uint64_t newer_than;
    uint64_t chief;
    uint64_t epoch;  // 0: refused
  };
  const std::vector<Case> cases = {
      {0, 20, 5},   // taken already: the answer was lost
      {4, 20, 5},   // likewise
      {5, 20, 6},   // another server was in epoch 5, too
      {0, 21, 6},   // a later chief
      {9, 21, 10},  // another server was in epoch 9
      {0, 19, 0},   // an earlier chief
      {9, 19, 0},   // likewise
      {0, 0, 6},    // sends no incarnation
  };
  const EpochFence fence = Following();
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat("newer than ", c.newer_than, ", ", c.chief));
    const auto drawn = fence.Draw(c.newer_than, c.chief, "file");
    if (c.epoch == 0) {
      EXPECT_THAT(drawn, StatusIs(kAborted));
    } else {
      EXPECT_THAT(drawn, IsOkAndHolds(c.epoch));
    }
  }
  EXPECT_EQ(fence.epoch(), 5u);  // nothing is followed yet
}

TEST(EpochFenceTest, EpochThatNothingCanFollowNamesTheFile) {
  EpochFence fence(2);
  fence.Find(~uint64_t{0});

  EXPECT_THAT(fence.Draw(0, 20, "/shm/file"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("remove /shm/file")));
}

TEST(EpochFenceTest, ChiefOfAnEpochThatWasFoundIsNotKnown) {
  EpochFence fence(2);
  fence.Find(5);
  fence.Find(3);

  EXPECT_EQ(fence.epoch(), 5u);
  EXPECT_THAT(fence.CheckFollowed(5, 20), StatusIs(kUnavailable));
  EXPECT_THAT(fence.CheckFollowed(4, 20), StatusIs(kAborted));
  EXPECT_THAT(fence.Draw(0, 20, "file"), IsOkAndHolds(6));
}

TEST(EpochFenceTest, OrdersThatDiscardCountOnceAnEpoch) {
  EpochFence fence(2);
  fence.NoteCreated();
  EXPECT_FALSE(fence.IsStateNew(/*active=*/false)) << "there is no epoch";

  fence.Follow(5, 20);
  EXPECT_TRUE(fence.BeginShutOut());
  EXPECT_FALSE(fence.BeginShutOut());
  EXPECT_FALSE(fence.IsStateNew(false));
  fence.NoteCreated();
  EXPECT_TRUE(fence.IsStateNew(/*active=*/false));
  EXPECT_FALSE(fence.IsStateNew(/*active=*/true)) << "it has been trained";
  fence.NoteDiscarded();
  EXPECT_TRUE(fence.IsStateNew(/*active=*/true));

  fence.Follow(6, 20);
  EXPECT_TRUE(fence.BeginShutOut());
  EXPECT_FALSE(fence.IsStateNew(true));
  EXPECT_FALSE(fence.IsStateNew(false));
}

}  // namespace
}  // namespace lockstep::server
