// A shard whose process was killed, and one that goes on beside it.

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::RedoFor;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P3(Stands, active, committed, prepared, "stands so") {
  return arg.active == active && arg.committed_step == committed &&
         arg.prepared_step == prepared;
}

class ShardRecoveryTest : public ShardFixture {
 protected:
  std::unique_ptr<Shard> CreateActive() {
    auto shard = Shard::Create(options_);
    EXPECT_OK(shard);
    EXPECT_OK((*shard)->Activate(0, {}));
    return *std::move(shard);
  }
  // As after a SIGKILL: whatever was in memory alone is gone.
  std::unique_ptr<Shard> Reopen(std::unique_ptr<Shard> killed) {
    killed.reset();
    auto shard = Shard::Open(options_);
    EXPECT_OK(shard);
    return shard.ok() ? *std::move(shard) : nullptr;
  }
  static void PushAs(Shard& shard, int worker, int64_t step, int64_t attempt,
                     PushOutcome expected = PushOutcome::kAccepted) {
    Push push{{worker, 1, step, step + 1, 0}, attempt, 0, Gradients(1)};
    const auto answers = shard.engine().AddPush(worker, std::move(push));
    ASSERT_OK(answers);
    for (const PushAnswer& answer : answers->pushes) {
      EXPECT_THAT(answer.outcomes, Each(expected));
    }
  }
  static void PushBoth(Shard& shard, int64_t step, int64_t attempt) {
    PushAs(shard, 0, step, attempt);
    PushAs(shard, 1, step, attempt);
  }
  static float FirstValue(Shard& shard) {
    const auto values = shard.Pull(0, 1, -1);
    EXPECT_OK(values);
    return FromBytes<float>(values->parts[0].bytes)[0];
  }
};

TEST_F(ShardRecoveryTest, CommittedStepIsThereAgain) {
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1);
  ASSERT_OK(shard->engine().Commit(1, 1));

  shard = Reopen(std::move(shard));

  EXPECT_THAT(shard->GetReport(), Stands(false, 1, -1));
  EXPECT_FALSE(shard->active());
  ASSERT_OK(shard->Activate(1, {}));
  EXPECT_EQ(FirstValue(*shard), 0.5f);
  EXPECT_EQ(shard->gate()->global_step(), 1);
}

TEST_F(ShardRecoveryTest, PreparedStepIsCommittedIfTheJobHasCommittedIt) {
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1);

  shard = Reopen(std::move(shard));

  EXPECT_THAT(shard->GetReport(), Stands(false, 0, 1));
  EXPECT_OK(shard->CheckActivate(1, {}, 0, {}));
  EXPECT_THAT(shard->GetReport(), Stands(false, 0, 1)) << "the check moved it";
  ASSERT_OK(shard->Activate(1, {}));
  EXPECT_EQ(FirstValue(*shard), 0.5f);
}

TEST_F(ShardRecoveryTest, PreparedStepIsRedoneIfTheJobHasNotCommittedIt) {
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1);

  shard = Reopen(std::move(shard));
  ASSERT_OK(shard->Activate(0, {}, 7));

  EXPECT_EQ(FirstValue(*shard), 1);
  EXPECT_THAT(shard->GetReport(), Stands(true, 0, -1));
  PushAs(*shard, 0, 0, 1, PushOutcome::kSuperseded);
  PushBoth(*shard, 0, 7);
  ASSERT_OK(shard->engine().Commit(1, 7));
  EXPECT_EQ(FirstValue(*shard), 0.5f);
}

TEST_F(ShardRecoveryTest, OneThatCannotBeAtTheStepIsNotOpened) {
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1);
  ASSERT_OK(shard->engine().Commit(1, 1));
  shard = Reopen(std::move(shard));
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition);

  for (int64_t step : {0, 2}) {
    EXPECT_THAT(shard->CheckActivate(step, {}, 0, {}), refused);
    EXPECT_THAT(shard->Activate(step, {}), refused);
  }

  EXPECT_FALSE(shard->active());
  EXPECT_OK(shard->CheckActivate(1, {}, 0, {}));
  EXPECT_OK(shard->Activate(1, {}));
}

TEST_F(ShardRecoveryTest, StateThatWasNeverOpenedIsNotResumed) {
  auto shard = Shard::Create(options_);
  ASSERT_OK(shard);
  ASSERT_OK(
      (*shard)->state().Write(0, 0, 0, BytesOf(std::vector<float>(4, 9))));

  auto reopened = Reopen(*std::move(shard));

  EXPECT_THAT(reopened->GetReport(), Stands(false, -1, -1));
  ASSERT_OK(reopened->Activate(0, {}));
  EXPECT_EQ(FirstValue(*reopened), 1);
}

TEST_F(ShardRecoveryTest, LivingShardGoesOnAsItStands) {
  auto shard = CreateActive();
  PushAs(*shard, 0, 0, 1);

  ASSERT_OK(shard->Activate(0, {}, 0));

  EXPECT_THAT(shard->GetReport(), Stands(true, 0, -1));
  PushAs(*shard, 1, 0, 1);
  EXPECT_THAT(shard->GetReport(), Stands(true, 0, 1));
}

TEST_F(ShardRecoveryTest, LivingShardDropsWhatItCollectedWhereAnotherLostIt) {
  auto shard = CreateActive();
  for (int worker : {0, 1}) {
    ASSERT_OK(shard->gate()->Wait(10 + worker, {worker, 1, -1, 0, 0}, 0, kNow));
  }
  ASSERT_OK(shard->gate()->Wait(3, {0, 1, 0, 1, 0}, 1, kNow));
  PushAs(*shard, 0, 0, 1);

  const auto activated = shard->Activate(0, {}, 5);

  ASSERT_OK(activated);
  EXPECT_EQ(activated->answers.pushes.size(), 1u);
  EXPECT_THAT(activated->tokens, ElementsAre(RedoFor(3, 5)));
  PushBoth(*shard, 0, 5);
  EXPECT_OK(shard->engine().Commit(1, 5));
}

TEST_F(ShardRecoveryTest, LivingShardCompletesWhatTheJobHasCommitted) {
  options_.task_index = 1;
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1);

  const auto activated = shard->Activate(1, {}, 9);

  ASSERT_OK(activated);
  EXPECT_THAT(activated->tokens, IsEmpty());
  EXPECT_THAT(shard->GetReport(), Stands(true, 1, -1));
  PushBoth(*shard, 1, 9);
  EXPECT_OK(shard->engine().Commit(2, 9));
}

TEST_F(ShardRecoveryTest, SettingsHoldFromTheirAttemptOnAndOutliveTheProcess) {
  options_.task_index = 1;  // ps task 0 would know that worker 1 is no member
  auto shard = CreateActive();
  PushAs(*shard, 0, 0, 1);
  const RunSettings settings = {
      .revision = 1, .replicas_to_aggregate = 1, .learning_rate_scale = 0.5};

  ASSERT_OK(shard->Activate(0, {}, 9, settings));
  PushAs(*shard, 1, 0, 9);

  EXPECT_THAT(shard->GetReport(), Stands(true, 0, 1));
  ASSERT_OK(shard->engine().Commit(1, 9));
  EXPECT_EQ(FirstValue(*shard), 0.75f);
  EXPECT_EQ(Reopen(std::move(shard))->settings(), settings);
}

TEST_F(ShardRecoveryTest, SharesOfAStepAreNoMatterOfSettings) {
  auto shard = CreateActive();

  EXPECT_THAT(shard->Activate(0, {}, 9, {.replicas_to_aggregate = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::server
