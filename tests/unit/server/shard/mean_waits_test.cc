#include "server/shard/mean_waits.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A mirror that sums part 0; another one sums the rest.
class MeanWaitsTest : public ShardFixture {
 protected:
  MeanWaitsTest() {
    options_.job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
    options_.parts[1].reducer = 1;
    options_.parts[2].reducer = 1;
    auto created = Shard::Create(options_);
    EXPECT_OK(created);
    shard_ = *std::move(created);
    EXPECT_OK(shard_->Activate(0, {}));
  }

  MeanWaits::Wait WaitFor(const StepAttempt& of, uint64_t ticket = 1) const {
    return {ticket, shard_, of, 0, 1, now_};
  }
  void Push(int worker) {
    server::Push push{{worker, 1, 0, 1, 0}, 1, 0, {}};
    push.gradients = {GradientOf(std::vector<float>(4, 1.0f))};
    ASSERT_OK(shard_->engine().AddPush(worker, std::move(push)));
  }

  const absl::Time now_ = absl::UnixEpoch();
  std::shared_ptr<Shard> shard_;
  MeanWaits waits_;
};

TEST_F(MeanWaitsTest, CallWaitsUntilItsMeansAreComputed) {
  waits_.Add(WaitFor({0, 1}, 7));
  EXPECT_THAT(waits_.TakeReady(shard_.get()), IsEmpty());

  Push(0);
  EXPECT_THAT(waits_.TakeReady(shard_.get()), IsEmpty());
  Push(1);
  const auto answers = waits_.TakeReady(shard_.get());

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].ticket, 7u);
  EXPECT_EQ(answers[0].shard, shard_);
  ASSERT_THAT(answers[0].means, IsOk());
  EXPECT_THAT(*answers[0].means, SizeIs(1));
  EXPECT_THAT(waits_.TakeReady(shard_.get()), IsEmpty());
}

TEST_F(MeanWaitsTest, CallForAnAttemptThatIsOverIsAnsweredAtOnce) {
  waits_.Add(WaitFor({0, 0}));
  const auto answers = waits_.TakeReady(shard_.get());
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].means, StatusIs(absl::StatusCode::kAborted));
}

TEST_F(MeanWaitsTest, CallOfADiscardedShardEnds) {
  waits_.Add(WaitFor({0, 1}));
  const auto answers = waits_.TakeReady(nullptr);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].means, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(MeanWaitsTest, CallEndsBeforeItsDeadlineAndTheServerIsNotTakenForGone) {
  waits_.Add(WaitFor({0, 1}));
  const absl::Time end = now_ + MeanWaits::kLongestWait;
  EXPECT_THAT(waits_.TakeOld(end - absl::Milliseconds(1)), IsEmpty());
  const auto answers = waits_.TakeOld(end);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].means, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                         HasSubstr("of step 1")));
}

TEST_F(MeanWaitsTest, AllEndInTheOrderInWhichTheyCame) {
  waits_.Add(WaitFor({0, 1}, 2));
  waits_.Add(WaitFor({0, 1}, 1));
  const auto answers = waits_.TakeAll(absl::CancelledError("it ends"));
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].ticket, 2u);
  EXPECT_EQ(answers[1].ticket, 1u);
  EXPECT_THAT(answers[1].means, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(waits_.TakeReady(nullptr), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
