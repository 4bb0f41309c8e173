// Which gradients are refused for NaN and infinities, and when that is found.

#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();

// Two workers, both count; two parts.
class StrictEngineNonFiniteTest : public ::testing::Test {
 protected:
  static Push PartOf(int worker, float gradient, int part = 0) {
    return PushOf({worker, 1, 0, 1, 0}, 1, part, 1, gradient);
  }
  // Under the worker's number; the call must work.
  std::vector<PushAnswer> Add(Push push) {
    const uint64_t ticket = push.pass.worker;
    absl::StatusOr<ShardAnswers> answers =
        shard_.AddPush(ticket, std::move(push));
    EXPECT_OK(answers);
    if (!answers.ok()) return {};
    return std::move(answers->pushes);
  }
  static auto IsRefused() {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("holds NaN"));
  }

  FakePartUpdater updater_{2};
  StrictEngine shard_{{.replicas_to_aggregate = 2, .total_num_replicas = 2},
                      updater_};
};

TEST_F(StrictEngineNonFiniteTest, OneThatIsOfOnePartIsRefusedAsItIsSummed) {
  EXPECT_THAT(Add(PartOf(1, kNan)), IsEmpty());

  const std::vector<PushAnswer> answers = Add(PartOf(0, 2));

  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].ticket, 1);
  EXPECT_THAT(answers[0].status, IsRefused());
  EXPECT_THAT(answers[0].values, IsEmpty());
  EXPECT_THAT(shard_.arrivals().parts, ElementsAre(Pair(0, 1)));
}

TEST_F(StrictEngineNonFiniteTest, EachTryOfTheWorkerIsLookedAt) {
  Add(PartOf(0, 2));

  for (float bad : {kNan, kInfinity, -kInfinity}) {
    const std::vector<PushAnswer> answers = Add(PartOf(1, bad));
    ASSERT_THAT(answers, SizeIs(1));
    EXPECT_EQ(answers[0].ticket, 1);
    EXPECT_THAT(answers[0].status, IsRefused());
  }
}

TEST_F(StrictEngineNonFiniteTest, OthersCountOnceTheRefusedOneIsReplaced) {
  Add(PartOf(1, kNan));
  Add(PartOf(0, 2));

  const std::vector<PushAnswer> answers = Add(PartOf(1, 3));

  ASSERT_THAT(answers, SizeIs(2));
  for (const PushAnswer& answer : answers) {
    EXPECT_OK(answer.status);
    EXPECT_THAT(answer.outcomes, Each(PushOutcome::kAccepted));
  }
  EXPECT_THAT(updater_.updates().back().gradients, ElementsAre(2, 3));
}

TEST_F(StrictEngineNonFiniteTest, InfinitiesThatCancelAreBothRefused) {
  Add(PartOf(1, kInfinity));

  const std::vector<PushAnswer> answers = Add(PartOf(0, -kInfinity));

  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_THAT(answers[0].status, IsRefused());
  EXPECT_THAT(answers[1].status, IsRefused());
}

TEST_F(StrictEngineNonFiniteTest, EveryCallWithTheRefusedOneIsTold) {
  Add(PartOf(1, kNan));
  ASSERT_OK(shard_.AddPush(7, PartOf(1, kNan)));  // its answer may be lost

  const std::vector<PushAnswer> answers = Add(PartOf(0, 2));

  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_THAT(answers[0].status, IsRefused());
  EXPECT_THAT(answers[1].status, IsRefused());
}

TEST_F(StrictEngineNonFiniteTest, ItsPushLearnsOfAPartThatFailedMeanwhile) {
  const auto failed = StatusIs(absl::StatusCode::kInternal);
  std::vector<PushAnswer> answers;
  updater_.on_update = [&](int part, int64_t) -> absl::Status {
    if (part == 0) return absl::InternalError("why");
    // Part 0 gets its last gradient while part 1 is summed.
    answers = Add(PartOf(0, 2, 0));
    return absl::OkStatus();
  };
  Add(PartOf(1, 2, 0));
  Add(PartOf(1, kNan, 1));

  EXPECT_THAT(Add(PartOf(0, 2, 1)), IsEmpty());

  ASSERT_THAT(answers, SizeIs(4));
  for (const PushAnswer& answer : answers) EXPECT_THAT(answer.status, failed);
  const auto take = shard_.Take(9, 0);
  ASSERT_OK(take);
  ASSERT_THAT(take->takes, SizeIs(1));
  EXPECT_THAT(take->takes[0].status, failed);
}

TEST_F(StrictEngineNonFiniteTest, FiniteOnesWhoseSumOverflowsCount) {
  Add(PartOf(1, kMax));

  const std::vector<PushAnswer> answers = Add(PartOf(0, kMax));

  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_OK(answers[0].status);
  EXPECT_OK(answers[1].status);
}

TEST_F(StrictEngineNonFiniteTest, OneOfSeveralPartsIsRefusedAtOnceWithAll) {
  for (float bad : {kNan, -kInfinity}) {
    Push push = PushOf({0, 1, 0, 1, 0}, 1, 0, 2, 1);
    push.gradients[1] = GradientOf(bad);
    EXPECT_THAT(shard_.AddPush(1, std::move(push)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("part 1 holds NaN")));
  }

  Add(PushOf({1, 1, 0, 1, 0}, 1, 0, 2, 1));
  EXPECT_THAT(updater_.updates(), IsEmpty());
}

TEST_F(StrictEngineNonFiniteTest,
       AShareIsRefusedAtOnceSinceItIsAnsweredAtOnce) {
  StrictEngine shard({.replicas_to_aggregate = 2, .total_num_replicas = 1},
                     updater_);

  EXPECT_THAT(shard.AddPush(1, PartOf(0, kNan)), IsRefused());
}

TEST_F(StrictEngineNonFiniteTest, ItCountsWhereTheJobAllowsIt) {
  FakePartUpdater updater(1);
  StrictEngine shard({.refuse_non_finite = false}, updater);

  const auto answers = shard.AddPush(1, PartOf(0, kNan));

  ASSERT_OK(answers);
  ASSERT_THAT(answers->pushes, SizeIs(1));
  EXPECT_OK(answers->pushes[0].status);
  EXPECT_THAT(updater.updates(), SizeIs(1));
}

}  // namespace
}  // namespace lockstep::server
