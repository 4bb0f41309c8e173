#include "server/step/compatible/token_queue.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Completions = TokenQueue::Completions;
using Tokens = std::vector<int64_t>;
constexpr auto kCancelled = absl::StatusCode::kCancelled;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P2(Got, id, token, "") {
  *result_listener << arg.id << ": " << arg.status << ", " << arg.token;
  return arg.id == static_cast<uint64_t>(id) && arg.status.ok() &&
         arg.token == token;
}

MATCHER_P2(Ended, id, code, "") {
  *result_listener << arg.id << ": " << arg.status;
  return arg.id == static_cast<uint64_t>(id) && arg.status.code() == code;
}

class TokenQueueTest : public ::testing::Test {
 protected:
  Completions Enqueue(const Tokens& tokens) {
    return Unwrap(queue_.EnqueueMany(tokens));
  }
  // Takes a token for a worker of its own.
  Completions Dequeue(uint64_t id) { return Take(id, Alone(id)); }
  Completions Take(uint64_t id, const TokenQueue::Taker& taker) {
    return Unwrap(queue_.TakeToken(id, taker, kNow));
  }
  Completions Close() { return queue_.Close(); }

  // Returns a taker that asks for nothing else.
  static TokenQueue::Taker Alone(uint64_t id) {
    return {100 + static_cast<int32_t>(id), 1, 1};
  }

  TokenQueue queue_;

 private:
  static Completions Unwrap(absl::StatusOr<Completions> completed) {
    EXPECT_OK(completed);
    return std::move(completed).value_or(Completions{});
  }
};

TEST_F(TokenQueueTest, IncarnationThatNoClockDrawsIsRefusedWithoutEffect) {
  Enqueue({0});

  EXPECT_THAT(queue_.TakeToken(1, {0, uint64_t{1} << 62, 0}, kNow),
              StatusIs(kInvalid, HasSubstr("worker 0 has incarnation")));

  EXPECT_THAT(Take(2, {0, 1, 0}), ElementsAre(Got(2, 0)));
}

TEST_F(TokenQueueTest, TokensLeaveInTheOrderInWhichTheyCame) {
  Enqueue({10, 20});
  Enqueue({30});
  EXPECT_EQ(queue_.size(), 3u);

  EXPECT_THAT(Dequeue(1), ElementsAre(Got(1, 10)));
  EXPECT_THAT(Dequeue(2), ElementsAre(Got(2, 20)));
  EXPECT_THAT(Dequeue(3), ElementsAre(Got(3, 30)));
}

TEST_F(TokenQueueTest, WaitingRequestsAreServedInOrder) {
  for (uint64_t id : {7, 5, 9}) EXPECT_THAT(Dequeue(id), IsEmpty());

  EXPECT_THAT(Enqueue({1, 2}), ElementsAre(Got(7, 1), Got(5, 2)));
  EXPECT_THAT(Enqueue({3, 4}), ElementsAre(Got(9, 3)));
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(TokenQueueTest, ClosedQueueTakesNoTokens) {
  Close();

  EXPECT_THAT(queue_.EnqueueMany(Tokens{40, 50}),
              StatusIs(kCancelled, HasSubstr("is closed")));
  EXPECT_OK(queue_.EnqueueMany({}));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(TokenQueueTest, ClosedQueueIsDrained) {
  Enqueue({10, 20});
  EXPECT_THAT(Close(), IsEmpty());

  EXPECT_THAT(Dequeue(1), ElementsAre(Got(1, 10)));
  EXPECT_THAT(Take(2, {0, 1, 1}), ElementsAre(Got(2, 20)));
  EXPECT_THAT(queue_.TakeToken(3, Alone(3), kNow), StatusIs(kOutOfRange));
  EXPECT_THAT(queue_.TakeToken(4, {1, 1, 1}, kNow), StatusIs(kOutOfRange));
}

TEST_F(TokenQueueTest, CloseEndsTheWaits) {
  Dequeue(1);
  Take(2, {0, 1, 1});

  EXPECT_THAT(Close(),
              ElementsAre(Ended(1, kOutOfRange), Ended(2, kOutOfRange)));
}

TEST_F(TokenQueueTest, CancelledRequestLosesNoToken) {
  Dequeue(1);
  Dequeue(2);

  EXPECT_THAT(queue_.Cancel(1), ElementsAre(Ended(1, kCancelled)));
  EXPECT_THAT(queue_.Cancel(1), IsEmpty());
  EXPECT_THAT(Enqueue({5}), ElementsAre(Got(2, 5)));
}

TEST_F(TokenQueueTest, IdThatWaitsCannotWaitTwice) {
  Dequeue(1);
  EXPECT_THAT(queue_.TakeToken(1, {0, 1, 1}, kNow),
              StatusIs(kInvalid, HasSubstr("id 1")));
}

TEST_F(TokenQueueTest, RepeatedTakeGivesTheSameToken) {
  Enqueue({4, 5});
  EXPECT_THAT(Take(1, {0, 1, 1}), ElementsAre(Got(1, 4)));

  EXPECT_THAT(Take(2, {0, 1, 1}), ElementsAre(Got(2, 4)));
  queue_.Settle({0, 1, 1});
  EXPECT_THAT(Take(3, {0, 1, 1}), ElementsAre(Got(3, 4)));

  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_THAT(Take(4, {0, 1, 2}), ElementsAre(Got(4, 5)));
}

TEST_F(TokenQueueTest, RepeatedTakeIsAnsweredOnAClosedQueueToo) {
  Enqueue({4});
  Take(1, {0, 1, 1});
  Close();

  EXPECT_THAT(Take(2, {0, 1, 1}), ElementsAre(Got(2, 4)));
}

TEST_F(TokenQueueTest, RepeatedTakeKeepsThePlaceInTheLine) {
  Take(1, {0, 1, 1});
  Take(2, {1, 1, 1});

  EXPECT_THAT(Take(3, {0, 1, 1}), ElementsAre(Ended(1, kCancelled)));
  EXPECT_THAT(Enqueue({8}), ElementsAre(Got(3, 8)));
}

TEST_F(TokenQueueTest, LaterPassEndsTheWaitOfAnEarlierOne) {
  Take(1, {0, 1, 1});

  EXPECT_THAT(Take(2, {0, 1, 2}), ElementsAre(Ended(1, kCancelled)));
  EXPECT_THAT(Enqueue({8, 9}), ElementsAre(Got(2, 8)));
}

TEST_F(TokenQueueTest, EarlierPassIsRefused) {
  Enqueue({1, 1, 1});
  Take(1, {0, 1, 5});

  EXPECT_THAT(queue_.TakeToken(2, {0, 1, 4}, kNow),
              StatusIs(kPrecondition, HasSubstr("at least 5")));
  EXPECT_EQ(queue_.size(), 2u);
}

TEST_F(TokenQueueTest, NewerIncarnationReplacesTheOlder) {
  Take(1, {0, 10, 5});

  EXPECT_THAT(Take(2, {0, 11, 1}), ElementsAre(Ended(1, kCancelled)));

  EXPECT_THAT(queue_.TakeToken(3, {0, 10, 6}, kNow),
              StatusIs(kPrecondition, HasSubstr("replaced by 11")));
  EXPECT_THAT(Enqueue({3}), ElementsAre(Got(2, 3)));
}

TEST_F(TokenQueueTest, TokenOfADeadWorkerGoesBackToTheFront) {
  Enqueue({1, 2});
  Take(1, {0, 1, 1});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 1), IsEmpty());

  EXPECT_THAT(queue_.GetState().tokens, ElementsAre(1, 2));
  EXPECT_THAT(queue_.GetState().leases, IsEmpty());
  EXPECT_THAT(queue_.ReturnTokensOf(0, 1), IsEmpty());
  EXPECT_EQ(queue_.size(), 2u);
}

TEST_F(TokenQueueTest, ReturnedTokenGoesToTheNextWait) {
  Enqueue({1});
  Take(1, {0, 1, 1});
  Take(2, {1, 1, 1});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 1), ElementsAre(Got(2, 1)));
  EXPECT_EQ(queue_.GetState().leases.at(0).taker.worker, 1);
}

TEST_F(TokenQueueTest, WaitOfADeadWorkerEnds) {
  Take(1, {0, 1, 1});
  Take(2, {1, 1, 1});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 1), ElementsAre(Ended(1, kCancelled)));
  EXPECT_THAT(Enqueue({1}), ElementsAre(Got(2, 1)));
}

TEST_F(TokenQueueTest, SettledTokenIsNotReturned) {
  Enqueue({1});
  Take(1, {0, 1, 1});
  queue_.Settle({0, 1, 1});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 1), IsEmpty());
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(TokenQueueTest, NextTakeSettlesTheTokenBefore) {
  Enqueue({1});
  Take(1, {0, 1, 1});
  Take(2, {0, 1, 2});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 1), ElementsAre(Ended(2, kCancelled)));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(TokenQueueTest, SettleOfAnotherTakeSettlesNothing) {
  Enqueue({1});
  Take(1, {0, 5, 2});

  for (const TokenQueue::Taker& other :
       {TokenQueue::Taker{0, 5, 1}, {0, 4, 2}, {1, 5, 2}}) {
    queue_.Settle(other);
  }

  EXPECT_FALSE(queue_.GetState().leases.at(0).settled);
}

// Its chief finds that out only later, and then finds a newer process.
TEST_F(TokenQueueTest, TokenOfTheProcessBeforeIsNotLost) {
  Enqueue({1, 2});
  Take(1, {0, 10, 1});

  EXPECT_THAT(Take(2, {0, 11, 1}), ElementsAre(Got(2, 2)));
  EXPECT_THAT(queue_.GetState().tokens, IsEmpty());

  EXPECT_THAT(queue_.ReturnTokensOf(0, 10), IsEmpty());
  EXPECT_THAT(queue_.GetState().tokens, ElementsAre(1));
  EXPECT_THAT(queue_.ReturnTokensOf(0, 10), IsEmpty());
  EXPECT_EQ(queue_.size(), 1u) << "given back twice";
}

// A chief that never knew the process expires all before the one that it knows.
TEST_F(TokenQueueTest, TokensAndWaitsOfAllIncarnationsUpToTheExpiredOneEnd) {
  Enqueue({1, 2});
  Take(1, {0, 8, 1});
  Take(2, {0, 9, 1});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 10), IsEmpty());
  EXPECT_THAT(queue_.GetState().tokens, UnorderedElementsAre(1, 2));

  Take(3, {1, 1, 1});
  Take(4, {1, 1, 2});
  Take(5, {0, 11, 1});
  EXPECT_THAT(queue_.ReturnTokensOf(0, 12), ElementsAre(Ended(5, kCancelled)));
}

TEST_F(TokenQueueTest, TokenOfThePreviousProcessGoesToTheNextWait) {
  Enqueue({1});
  Take(1, {0, 10, 1});
  EXPECT_THAT(Take(2, {0, 11, 1}), IsEmpty());
  EXPECT_THAT(Take(3, {1, 1, 1}), IsEmpty());

  // The newer process has no token that could come back.
  EXPECT_THAT(queue_.ReturnTokensOf(0, 11),
              ElementsAre(Ended(2, kCancelled), Got(3, 1)));
}

TEST_F(TokenQueueTest, SettledTokenOfTheProcessBeforeIsNotGivenTwice) {
  Enqueue({1, 2});
  Take(1, {0, 10, 1});
  queue_.Settle({0, 10, 1});

  EXPECT_THAT(Take(2, {0, 11, 1}), ElementsAre(Got(2, 2)));
}

TEST_F(TokenQueueTest, NothingOfANewerIncarnationIsReturned) {
  Enqueue({1});
  Take(1, {0, 11, 1});

  EXPECT_THAT(queue_.ReturnTokensOf(0, 10), IsEmpty());
  EXPECT_THAT(queue_.ReturnTokensOf(7, 1), IsEmpty());
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(TokenQueueTest, ReturnedWorkerThatLivesTakesAnew) {
  Enqueue({1, 2});
  Take(1, {0, 1, 1});
  Take(2, {1, 1, 1});
  queue_.ReturnTokensOf(1, 1);

  EXPECT_THAT(Take(3, {1, 1, 1}), ElementsAre(Got(3, 2)));
}

TEST_F(TokenQueueTest, FailedTakeHasChangedNothing) {
  Enqueue({1});
  Take(1, {0, 1, 1});
  Close();

  EXPECT_THAT(queue_.TakeToken(2, {0, 2, 1}, kNow), StatusIs(kOutOfRange));
  EXPECT_THAT(queue_.TakeToken(3, {0, 1, 2}, kNow), StatusIs(kOutOfRange));

  EXPECT_THAT(queue_.GetState().leases, SizeIs(1));
  EXPECT_FALSE(queue_.GetState().leases[0].settled);
}

TEST_F(TokenQueueTest, StateHasTheWaitsAndTheirBeginnings) {
  ASSERT_OK(queue_.TakeToken(4, {2, 1, 6}, kNow));
  ASSERT_OK(queue_.TakeToken(5, {3, 1, 1}, kNow + absl::Seconds(1)));
  ASSERT_OK(queue_.TakeToken(6, {2, 1, 6}, kNow + absl::Seconds(9)));

  const TokenQueue::State state = queue_.GetState();

  ASSERT_THAT(state.waiting, SizeIs(2));
  EXPECT_EQ(state.waiting[0].id, 6u);
  EXPECT_EQ(state.waiting[0].taker, (TokenQueue::Taker{2, 1, 6}));
  EXPECT_EQ(state.waiting[0].since, kNow);
  EXPECT_EQ(state.waiting[1].taker, (TokenQueue::Taker{3, 1, 1}));
  EXPECT_EQ(state.waiting[1].since, kNow + absl::Seconds(1));
  EXPECT_FALSE(state.closed);
}

// Ten takers and ten tokens at once: each token goes to exactly one of them.
TEST_F(TokenQueueTest, ParallelTakersGetATokenEach) {
  std::atomic<int64_t> sum = 0;
  std::atomic<int> served = 0;
  const auto collect = [&](const Completions& completed) {
    for (const auto& request : completed) {
      ++served;
      sum += request.token;
    }
  };
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < 10; ++i) {
    threads.emplace_back([&, i] { collect(Take(i, {i, 1, 1})); });
    threads.emplace_back([&, i] { collect(Enqueue({int64_t{1} << i})); });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(served, 10);
  EXPECT_EQ(sum, (1 << 10) - 1);
  EXPECT_EQ(queue_.size(), 0u);
}

// Workers take, repeat, settle and die at random; every token issued is then
// in the queue, leased to one worker, or was settled by one.
TEST_F(TokenQueueTest, NoTokenIsLostOrGivenTwice) {
  constexpr int kPasses = 200;
  std::atomic<int> settled = 0;
  std::atomic<uint64_t> next_id = 0;
  std::vector<std::thread> workers;
  for (int32_t worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&, worker] {
      for (int64_t pass = 1; pass <= kPasses; ++pass) {
        const TokenQueue::Taker taker{worker, 1, pass};
        Enqueue({pass});
        Take(next_id++, taker);
        Take(next_id++, taker);
        if (pass % 3 == worker % 3) {
          queue_.ReturnTokensOf(worker, 1);
          continue;
        }
        for (const auto& lease : queue_.GetState().leases) {
          if (lease.taker != taker) continue;
          queue_.Settle(taker);
          ++settled;
        }
        // A token that came after the look is not to be lost to the next pass.
        queue_.ReturnTokensOf(worker, 1);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();

  EXPECT_GT(settled, 0);
  EXPECT_EQ(settled + static_cast<int>(queue_.size()), 4 * kPasses);
}

}  // namespace
}  // namespace lockstep::server
