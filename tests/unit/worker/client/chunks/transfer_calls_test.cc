#include "worker/client/chunks/transfer_calls.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::Eq;
using ::testing::Optional;

const absl::Time kNow = absl::FromUnixSeconds(1000);
const absl::Duration kPause = absl::Milliseconds(100);

TEST(TransferCallsTest, ChunksOfAServerStartInOrderWithinItsWindow) {
  TransferCalls calls({.window = 2}, {{5, 3}, {}});
  calls.Add(0, 4);
  calls.Add(1, 7);

  EXPECT_THAT(calls.Next(0, kNow), Optional(5u));
  EXPECT_FALSE(calls.IsFull(0));
  EXPECT_THAT(calls.Next(0, kNow), Optional(3u));
  EXPECT_TRUE(calls.IsFull(0));
  EXPECT_THAT(calls.Next(0, kNow), Eq(std::nullopt));
  EXPECT_FALSE(calls.AllStarted(0));
  EXPECT_THAT(calls.Next(1, kNow), Optional(7u));
  EXPECT_TRUE(calls.AllStarted(1));

  EXPECT_TRUE(calls.Done(0, 5, absl::OkStatus(), kNow));
  EXPECT_THAT(calls.Next(0, kNow), Optional(4u));
  EXPECT_FALSE(calls.Done(0, 3, absl::OkStatus(), kNow));
}

TEST(TransferCallsTest, ServerMayHaveNoWindow) {
  TransferCalls calls({.window = 1, .without_window = {true}},
                      {{0, 1}, {0, 1}});

  EXPECT_THAT(calls.Next(0, kNow), Optional(0u));
  EXPECT_THAT(calls.Next(0, kNow), Optional(1u));
  EXPECT_THAT(calls.Next(1, kNow), Optional(0u));
  EXPECT_THAT(calls.Next(1, kNow), Eq(std::nullopt));
}

TEST(TransferCallsTest, TransferIsOverOnceEveryChunkIsTransferred) {
  TransferCalls calls({}, {{0}, {}});
  EXPECT_FALSE(calls.IsOver());
  ASSERT_THAT(calls.Next(0, kNow), Optional(0u));
  EXPECT_FALSE(calls.IsOver());

  EXPECT_FALSE(calls.Done(0, 0, absl::OkStatus(), kNow));
  EXPECT_TRUE(calls.IsOver());

  calls.Add(1, 2);
  EXPECT_FALSE(calls.IsOver());
}

TEST(TransferCallsTest, CallToAnAbsentServerIsRepeatedFirstAfterAPause) {
  TransferCalls calls({.window = 1, .retry_pause = kPause}, {{0, 1}});
  ASSERT_THAT(calls.Next(0, kNow), Optional(0u));

  EXPECT_FALSE(calls.Done(0, 0, absl::UnavailableError("away"), kNow));

  EXPECT_EQ(calls.retry_at(0), kNow + kPause);
  EXPECT_THAT(calls.Next(0, kNow), Eq(std::nullopt));
  EXPECT_THAT(calls.Next(0, kNow + kPause), Optional(0u));
  EXPECT_TRUE(calls.failure().ok());
}

// All workers send in one order: others wait for the chunks that this one
// started first.
TEST(TransferCallsTest, CallsThatFailTogetherAreRepeatedInTheirOrder) {
  TransferCalls calls({.window = 4, .retry_pause = kPause}, {{5, 3}});
  for (const size_t chunk : {4, 6, 2}) calls.Add(0, chunk);
  for (const size_t chunk : {5, 3, 4, 6}) {
    ASSERT_THAT(calls.Next(0, kNow), Optional(chunk));
  }

  for (const size_t chunk : {5, 4, 6, 3}) {
    EXPECT_FALSE(calls.Done(0, chunk, absl::UnavailableError("away"), kNow));
  }

  const absl::Time later = kNow + absl::Seconds(1);
  for (const size_t chunk : {5, 3, 4, 6}) {
    EXPECT_THAT(calls.Next(0, later), Optional(chunk));
  }
  EXPECT_TRUE(calls.Done(0, 4, absl::OkStatus(), later));
  EXPECT_THAT(calls.Next(0, later), Optional(2u));
}

TEST(TransferCallsTest, PauseGrowsUntilACallSucceeds) {
  TransferCalls calls({.window = 1, .retry_pause = kPause}, {{0, 1}});
  absl::Time now = kNow;
  for (const absl::Duration pause :
       {kPause, 2 * kPause, 3 * kPause, 3 * kPause}) {
    ASSERT_THAT(calls.Next(0, now), Optional(0u));
    EXPECT_FALSE(calls.Done(0, 0, absl::UnavailableError("away"), now));
    EXPECT_EQ(calls.retry_at(0), now + pause);
    now += pause;
  }
  ASSERT_THAT(calls.Next(0, now), Optional(0u));
  ASSERT_TRUE(calls.Done(0, 0, absl::OkStatus(), now));
  ASSERT_THAT(calls.Next(0, now), Optional(1u));

  EXPECT_FALSE(calls.Done(0, 1, absl::UnavailableError("away"), now));

  EXPECT_EQ(calls.retry_at(0), now + kPause);
}

TEST(TransferCallsTest, CallWithoutAnAnswerInTimeIsRepeatedAtOnceTheFirstTime) {
  TransferCalls calls({.retry_pause = kPause}, {{0}});
  ASSERT_THAT(calls.Next(0, kNow), Optional(0u));

  EXPECT_TRUE(calls.Done(0, 0, absl::DeadlineExceededError("none"), kNow));
  ASSERT_THAT(calls.Next(0, kNow), Optional(0u));

  EXPECT_FALSE(calls.Done(0, 0, absl::DeadlineExceededError("none"), kNow));
  EXPECT_EQ(calls.retry_at(0), kNow + 2 * kPause);
}

TEST(TransferCallsTest, FailureForGoodEndsTheTransferAfterTheCallsInFlight) {
  TransferCalls calls({.window = 2}, {{0, 1, 2}});
  ASSERT_THAT(calls.Next(0, kNow), Optional(0u));
  ASSERT_THAT(calls.Next(0, kNow), Optional(1u));

  EXPECT_FALSE(calls.Done(0, 0, absl::InternalError("first"), kNow));
  EXPECT_THAT(calls.Next(0, kNow), Eq(std::nullopt));
  EXPECT_FALSE(calls.IsOver());
  // A call that would be repeated is not, either.
  EXPECT_FALSE(calls.Done(0, 1, absl::DeadlineExceededError("none"), kNow));

  EXPECT_TRUE(calls.IsOver());
  EXPECT_EQ(calls.failure(), absl::InternalError("first"));
}

}  // namespace
}  // namespace lockstep::worker
