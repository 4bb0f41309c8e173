#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

float ValueFor(int worker, int64_t attempt) {
  return static_cast<float>(100 * worker + attempt);
}

// Two workers, both count; two parts. Every push asks for values, under the
// worker's number.
class StrictEngineValuesTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 2;

  ShardAnswers Add(int worker, int64_t attempt = 1, int64_t step = 0,
                   bool return_values = true) {
    Push push = PushOf({worker, 1, step, step + 1, 0}, attempt, 0, kParts,
                       ValueFor(worker, attempt));
    push.return_values = return_values;
    absl::StatusOr<ShardAnswers> answers =
        shard_.AddPush(worker, std::move(push));
    EXPECT_OK(answers);
    return answers.ok() ? *std::move(answers) : ShardAnswers();
  }
  static std::vector<float> ValuesFor(const ShardAnswers& answers,
                                      uint64_t ticket) {
    std::vector<float> values;
    for (const PushAnswer& answer : answers.pushes) {
      if (answer.ticket != ticket) continue;
      for (const LentBytes& value : answer.values) {
        values.push_back(*reinterpret_cast<const float*>(value.bytes.data()));
      }
    }
    return values;
  }

  FakePartUpdater updater_{kParts};
  StrictEngine shard_{{.replicas_to_aggregate = 2, .total_num_replicas = 2},
                      updater_};
};

TEST_F(StrictEngineValuesTest, PushThatAsksIsAnsweredWithTheNewValues) {
  Add(0);
  const ShardAnswers answers = Add(1);

  ASSERT_THAT(answers.pushes, SizeIs(2));
  const float sum = ValueFor(0, 1) + ValueFor(1, 1);
  EXPECT_THAT(ValuesFor(answers, 0), ElementsAre(sum, sum));
  EXPECT_THAT(ValuesFor(answers, 1), ElementsAre(sum, sum));
}

TEST_F(StrictEngineValuesTest, PushThatDoesNotAskGetsNone) {
  Add(0);
  const ShardAnswers answers = Add(1, 1, 0, /*return_values=*/false);

  EXPECT_THAT(ValuesFor(answers, 0), SizeIs(kParts));
  EXPECT_THAT(ValuesFor(answers, 1), IsEmpty());
}

TEST_F(StrictEngineValuesTest, RepeatedPushIsAnsweredWithTheValuesAgain) {
  Add(0);
  Add(1);

  const ShardAnswers again = Add(1);

  ASSERT_THAT(again.pushes, SizeIs(1));
  EXPECT_THAT(again.pushes[0].outcomes, Each(PushOutcome::kDuplicate));
  EXPECT_THAT(ValuesFor(again, 1), SizeIs(kParts));
}

TEST_F(StrictEngineValuesTest, PushThatDoesNotCountBringsNoValues) {
  Add(0);
  const ShardAnswers superseded = shard_.StartAttempt(0, 2);
  Add(1, 2);
  Add(0, 2);
  ASSERT_OK(shard_.Commit(1, 2));
  const ShardAnswers stale = Add(0);

  ASSERT_THAT(superseded.pushes, SizeIs(1));
  EXPECT_THAT(superseded.pushes[0].values, IsEmpty());
  ASSERT_THAT(stale.pushes, SizeIs(1));
  EXPECT_THAT(stale.pushes[0].values, IsEmpty());
}

TEST_F(StrictEngineValuesTest, WorkerWithSeveralSharesGetsNoValues) {
  FakePartUpdater updater(1);
  StrictEngine shard({.replicas_to_aggregate = 2, .total_num_replicas = 1},
                     updater);
  Push push = PushOf({0, 1, 0, 1, 0}, 1, 0, 1, 5);
  push.return_values = true;

  const auto answers = shard.AddPush(1, std::move(push));

  ASSERT_OK(answers);
  ASSERT_THAT(answers->pushes, SizeIs(1));
  EXPECT_THAT(answers->pushes[0].values, IsEmpty());
}

TEST_F(StrictEngineValuesTest, LastGradientSaysThatTheStepIsPrepared) {
  shard_.StartAttempt(0, 2);
  EXPECT_FALSE(Add(0, 2).prepared.has_value());
  const ShardAnswers answers = Add(1, 2);

  ASSERT_TRUE(answers.prepared.has_value());
  EXPECT_EQ(answers.prepared->step, 0);
  EXPECT_EQ(answers.prepared->attempt, 2);
  EXPECT_FALSE(Add(1, 2).prepared.has_value());
}

TEST_F(StrictEngineValuesTest, PartThatIsBeingReadIsUpdatedOnceItIsNot) {
  Add(0);
  ShardAnswers lent = Add(1);
  ASSERT_OK(shard_.Commit(1, 1));

  EXPECT_THAT(Add(0, 1, 1).pushes, IsEmpty());
  EXPECT_THAT(Add(1, 1, 1).pushes, IsEmpty());
  EXPECT_THAT(updater_.updates(), SizeIs(kParts));
  EXPECT_THAT(shard_.BlockedParts(), ElementsAre(0, 1));
  lent.pushes.clear();
  ShardAnswers answers;
  for (int part = 0; part < kParts; ++part) {
    answers.Append(shard_.PartReturned(part));
  }

  EXPECT_THAT(shard_.BlockedParts(), IsEmpty());
  EXPECT_THAT(updater_.updates(), SizeIs(2 * kParts));
  EXPECT_THAT(answers.pushes, SizeIs(2));
  EXPECT_OK(shard_.Commit(2, 1));
}

TEST_F(StrictEngineValuesTest, BlockedUpdateOfAnAttemptThatIsOverIsNotMade) {
  Add(0);
  ShardAnswers lent = Add(1);
  ASSERT_OK(shard_.Commit(1, 1));
  for (int64_t attempt : {1, 2}) {
    shard_.StartAttempt(1, attempt);
    for (int worker : {0, 1}) Add(worker, attempt, 1);
  }

  lent.pushes.clear();
  for (int part = 0; part < kParts; ++part) shard_.PartReturned(part);

  ASSERT_THAT(updater_.updates(), SizeIs(2 * kParts));
  EXPECT_THAT(updater_.updates().back().gradients,
              ElementsAre(ValueFor(0, 2), ValueFor(1, 2)));
  EXPECT_THAT(shard_.PartReturned(0).pushes, IsEmpty());
}

TEST_F(StrictEngineValuesTest, RedoneStepWaitsForReadersOfTheOldAttempt) {
  Add(0);
  ShardAnswers lent = Add(1);

  shard_.StartAttempt(0, 2);
  for (int worker : {0, 1}) EXPECT_THAT(Add(worker, 2).pushes, IsEmpty());
  EXPECT_THAT(shard_.WaitsFor(), HasSubstr("readers of older values of 2"));
  EXPECT_THAT(updater_.updates(), SizeIs(kParts));
  EXPECT_THAT(ValuesFor(lent, 0), Each(ValueFor(0, 1) + ValueFor(1, 1)));
  lent.pushes.clear();
  for (int part = 0; part < kParts; ++part) shard_.PartReturned(part);

  EXPECT_THAT(updater_.updates(), SizeIs(2 * kParts));
  EXPECT_OK(shard_.Commit(1, 2));
}

}  // namespace
}  // namespace lockstep::server
