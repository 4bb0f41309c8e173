// Where the norm of the mean gradients is limited: parts are measured first,
// and updated when the norm over all servers is known.

#include <cmath>
#include <optional>
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Update = FakePartUpdater::Update_;

// Two parts, two workers; the mean of part 0 is 3, that of part 1 is 4.
class StrictUpdatesTest : public ::testing::Test {
 protected:
  static StrictEngine::Options Options(bool has_all_parts) {
    StrictEngine::Options options;
    options.replicas_to_aggregate = 2;
    options.total_num_replicas = 2;
    options.limit_mean = true;
    options.has_all_parts = has_all_parts;
    return options;
  }
  static Push PushFrom(int worker, int64_t attempt = 1, int64_t step = 0) {
    Push push = PushOf({worker, 1, step, step + 1, 0}, attempt, 0, 2, 0);
    push.gradients = {GradientOf(worker == 0 ? 2 : 4),
                      GradientOf(worker == 0 ? 3 : 5)};
    push.return_values = true;
    return push;
  }
  static ShardAnswers Add(StrictEngine& engine, Push push) {
    const uint64_t ticket = push.pass.worker;
    absl::StatusOr<ShardAnswers> answers =
        engine.AddPush(ticket, std::move(push));
    EXPECT_OK(answers);
    return answers.ok() ? *std::move(answers) : ShardAnswers();
  }
  ShardAnswers Collect(int64_t attempt = 1) {
    Add(engine_, PushFrom(0, attempt));
    return Add(engine_, PushFrom(1, attempt));
  }
  // The answer to the chief's wait.
  TakeAnswer Take(int64_t step = 0) {
    absl::StatusOr<ShardAnswers> answers = engine_.Take(9, step);
    EXPECT_OK(answers);
    EXPECT_THAT(answers->takes, SizeIs(1));
    return answers->takes.empty() ? TakeAnswer() : answers->takes[0];
  }

  FakePartUpdater updater_{2};
  StrictEngine engine_{Options(/*has_all_parts=*/false), updater_};
};

TEST_F(StrictUpdatesTest, PushesAreAnsweredBeforeTheUpdateAndWithoutValues) {
  const ShardAnswers answers = Collect();

  ASSERT_THAT(answers.pushes, SizeIs(2));
  for (const PushAnswer& push : answers.pushes) {
    EXPECT_THAT(push.outcomes,
                ElementsAre(PushOutcome::kAccepted, PushOutcome::kAccepted));
    EXPECT_THAT(push.values, IsEmpty());
  }
  EXPECT_THAT(updater_.updates(), IsEmpty());
  EXPECT_FALSE(answers.prepared.has_value());
  EXPECT_THAT(engine_.WaitsFor(), HasSubstr("norm"));
  EXPECT_EQ(engine_.arrivals().open_parts, 0);
}

TEST_F(StrictUpdatesTest, ChiefGetsTheSquaresOnceAllGradientsAreIn) {
  ASSERT_OK(engine_.Take(9, 0));
  EXPECT_THAT(Add(engine_, PushFrom(0)).takes, IsEmpty());

  const ShardAnswers answers = Add(engine_, PushFrom(1));

  ASSERT_THAT(answers.takes, SizeIs(1));
  EXPECT_FALSE(answers.takes[0].prepared);
  EXPECT_EQ(answers.takes[0].squares, 3 * 3 + 4 * 4);
  EXPECT_EQ(answers.takes[0].attempt, 1);
  EXPECT_THAT(answers.takes[0].contributors, ElementsAre(0, 1));
  // And again, for a chief that was started anew.
  EXPECT_EQ(Take().squares, 25);
}

TEST_F(StrictUpdatesTest, NormUpdatesAllPartsAndPrepares) {
  Collect();

  const ShardAnswers answers = engine_.ApplyNorm(0, {1, 13});

  EXPECT_THAT(updater_.updates(), UnorderedElementsAre(Update{0, 0, {3, 13}},
                                                       Update{1, 0, {4, 13}}));
  EXPECT_TRUE(answers.prepared.has_value());
  const TakeAnswer take = Take();
  EXPECT_TRUE(take.prepared);
  EXPECT_EQ(take.squares, 25);
  EXPECT_OK(engine_.Commit(1, 1));
  EXPECT_EQ(engine_.step(), 1);
}

TEST_F(StrictUpdatesTest, NormCountsOnce) {
  Collect();
  engine_.ApplyNorm(0, {1, 13});

  EXPECT_FALSE(engine_.ApplyNorm(0, {1, 14}).prepared.has_value());

  EXPECT_THAT(updater_.updates(), SizeIs(2));
}

TEST_F(StrictUpdatesTest, NormOfAnotherAttemptOrStepOrTooEarlyChangesNothing) {
  Add(engine_, PushFrom(0));
  engine_.ApplyNorm(0, {1, 13});
  Add(engine_, PushFrom(1));
  engine_.ApplyNorm(0, {2, 13});
  engine_.ApplyNorm(1, {1, 13});

  EXPECT_THAT(updater_.updates(), IsEmpty());
  EXPECT_FALSE(Take().prepared);
}

TEST_F(StrictUpdatesTest, NewAttemptMeasuresAnewWhateverWasMeasuredOrUpdated) {
  Collect();
  engine_.StartAttempt(0, 2);
  engine_.ApplyNorm(0, {1, 13});
  EXPECT_THAT(updater_.updates(), IsEmpty());
  EXPECT_EQ(engine_.arrivals().open_parts, 2);

  Collect(2);
  EXPECT_TRUE(engine_.ApplyNorm(0, {2, 13}).prepared.has_value());
  engine_.StartAttempt(0, 3);
  EXPECT_THAT(updater_.log(), ElementsAre("prepared 1 attempt 2", "dropped"));

  Collect(3);
  EXPECT_EQ(Take().squares, 25);
  EXPECT_TRUE(engine_.ApplyNorm(0, {3, 5}).prepared.has_value());
  EXPECT_OK(engine_.Commit(1, 3));
}

TEST_F(StrictUpdatesTest, ServerWithAllPartsNeedsNoChiefForTheNorm) {
  StrictEngine engine(Options(/*has_all_parts=*/true), updater_);
  Add(engine, PushFrom(0));

  const ShardAnswers answers = Add(engine, PushFrom(1));

  EXPECT_TRUE(answers.prepared.has_value());
  EXPECT_THAT(updater_.updates(),
              UnorderedElementsAre(Update{0, 0, {3, 5}}, Update{1, 0, {4, 5}}));
  EXPECT_OK(engine.Commit(1, 1));
  Add(engine, PushFrom(0, 1, 1));
  EXPECT_TRUE(Add(engine, PushFrom(1, 1, 1)).prepared.has_value());
}

TEST_F(StrictUpdatesTest, ServerWithoutPartsIsPreparedAndAddsNothing) {
  FakePartUpdater none(0);
  StrictEngine engine(Options(false), none);

  const absl::StatusOr<ShardAnswers> answers = engine.Take(1, 0);

  ASSERT_OK(answers);
  EXPECT_TRUE(answers->takes.at(0).prepared);
  EXPECT_EQ(answers->takes.at(0).squares, 0);
}

TEST_F(StrictUpdatesTest, RepeatedPushOfAMeasuredPartIsADuplicate) {
  Collect();

  const ShardAnswers answers = Add(engine_, PushFrom(0));

  ASSERT_THAT(answers.pushes, SizeIs(1));
  EXPECT_THAT(answers.pushes[0].outcomes,
              ElementsAre(PushOutcome::kDuplicate, PushOutcome::kDuplicate));
  EXPECT_EQ(Take().squares, 25);
}

TEST_F(StrictUpdatesTest, UpdatesWaitForReadersOfTheMemoryThatTheyWriteTo) {
  Collect();
  std::optional<LentBytes> lent = updater_.LendNext(1);
  EXPECT_FALSE(engine_.ApplyNorm(0, {1, 5}).prepared.has_value());
  EXPECT_THAT(engine_.BlockedParts(), ElementsAre(1));

  lent.reset();

  EXPECT_TRUE(engine_.PartReturned(1).prepared.has_value());
}

TEST_F(StrictUpdatesTest, NonFiniteGradientIsRefusedBeforeAnythingIsMeasured) {
  Push bad = PushFrom(0);
  bad.gradients.resize(1);
  bad.gradients[0] = GradientOf(NAN);
  Add(engine_, bad);
  Push good = PushFrom(1);
  good.gradients.resize(1);

  const ShardAnswers answers = Add(engine_, good);

  ASSERT_THAT(answers.pushes, SizeIs(1));
  EXPECT_THAT(answers.pushes[0].status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradient of part 0 holds NaN")));
  EXPECT_EQ(answers.pushes[0].ticket, 0U);
  EXPECT_EQ(engine_.arrivals().open_parts, 2);
}

}  // namespace
}  // namespace lockstep::server
