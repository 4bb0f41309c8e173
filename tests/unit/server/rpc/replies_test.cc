#include "server/rpc/replies.h"

#include <utility>
#include <vector>

#include "common/wire/tensor_message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/sync.pb.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::testing::IsEmpty;
using testing::ManualClock;
using testing::StatusIs;

class RepliesTest : public ::testing::Test {
 protected:
  // Notes how a call ends.
  Respond Note() {
    return [this](const absl::Status& status, grpc::ByteBuffer response) {
      ends_.emplace_back(status, std::move(response));
    };
  }

  v1::TakeTokenResponse Token(size_t end) const {
    v1::TakeTokenResponse response;
    EXPECT_OK(DecodeMessage(ends_.at(end).second, response));
    return response;
  }

  ManualClock clock_;
  ShardHost host_{ShardHost::Options{}};
  std::vector<std::pair<absl::Status, grpc::ByteBuffer>> ends_;
  Replies replies_{host_, clock_};
};

TEST_F(RepliesTest, RefusedPushEndsOnce) {
  const absl::Status why = absl::InvalidArgumentError("why");
  const uint64_t ticket = replies_.FilePush({Note()});

  replies_.FailPush(ticket, why);
  replies_.FailPush(ticket, why);
  replies_.EndAll(absl::UnavailableError("gone"));

  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].first, why);
}

TEST_F(RepliesTest, TokenGoesToTheWaitThatItIsFor) {
  const uint64_t one = replies_.FileTokenWait(Note());
  const uint64_t other = replies_.FileTokenWait(Note());
  ASSERT_NE(one, other);

  replies_.SendTokens({{other, Gate::Outcome::kToken, 7}});
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(Token(0).step(), 7);
  EXPECT_EQ(Token(0).outcome(), v1::TOKEN);

  replies_.SendTokens(
      {{other, Gate::Outcome::kToken, 8}, {one, Gate::Outcome::kFinished}});
  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_EQ(Token(1).outcome(), v1::TOKEN_FINISHED);
}

TEST_F(RepliesTest, OldWaitIsAnsweredThatItMayAskAgain) {
  replies_.FileTokenWait(Note());
  clock_.Advance(absl::Seconds(2));
  replies_.FileTokenWait(Note());

  replies_.AnswerOld(clock_.Now());
  EXPECT_THAT(ends_, IsEmpty());

  clock_.Advance(absl::Seconds(2));
  replies_.AnswerOld(clock_.Now());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_OK(ends_[0].first);
  EXPECT_EQ(Token(0).outcome(), v1::TOKEN_WAIT);
}

TEST_F(RepliesTest, EndOfTheProcessEndsAllCalls) {
  replies_.FilePush({Note()});
  replies_.FileTokenWait(Note());

  replies_.EndAll(absl::UnavailableError("gone"));

  ASSERT_EQ(ends_.size(), 2u);
  EXPECT_THAT(ends_[0].first, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(ends_[1].first, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(RepliesTest, ShardThatIsDiscardedIsHeldByNoCall) {
  int broken_off = 0;
  bool mirrors_told = false;
  replies_.set_on_means_changed([&] { mirrors_told = true; });
  replies_.FilePush({Note()});
  const auto lent =
      replies_.Lend(0, 1, [&](const absl::Status&) { ++broken_off; });

  replies_.LetGo(absl::UnavailableError("the state is opened again"));

  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_THAT(ends_[0].first, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(broken_off, 1);
  EXPECT_TRUE(mirrors_told);
}

TEST_F(RepliesTest, CopiedAnswerLendsNothing) {
  EXPECT_EQ(replies_.Lend(0, 1, nullptr), nullptr);
  EXPECT_NE(replies_.Lend(0, 1, [](const absl::Status&) {}), nullptr);
}

}  // namespace
}  // namespace lockstep::server
