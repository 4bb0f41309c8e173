#include "server/calls/pending_calls.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(PendingCallsTest, CallIsTakenOnce) {
  PendingCalls<std::string> calls;
  const uint64_t a = calls.Add("a", kNow);
  const uint64_t b = calls.Add("b", kNow);

  EXPECT_THAT(calls.Take(a), Optional(std::string("a")));
  EXPECT_EQ(calls.Take(a), std::nullopt);
  EXPECT_THAT(calls.Take(b), Optional(std::string("b")));
}

TEST(PendingCallsTest, TicketsAreNotUsedAgain) {
  PendingCalls<std::string> calls;
  const uint64_t a = calls.Add("a", kNow);
  calls.Take(a);
  EXPECT_NE(calls.Add("b", kNow), a);
  EXPECT_EQ(calls.Take(a), std::nullopt);
}

TEST(PendingCallsTest, OldCallsAreThoseThatStillWait) {
  PendingCalls<std::string> calls;
  const uint64_t taken = calls.Add("taken", kNow);
  const uint64_t old = calls.Add("old", kNow);
  calls.Add("new", kNow + absl::Seconds(1));
  calls.Take(taken);

  EXPECT_THAT(calls.OlderThan(kNow), IsEmpty());
  EXPECT_THAT(calls.OlderThan(kNow + absl::Seconds(1)), ElementsAre(old));
}

}  // namespace
}  // namespace lockstep::server
