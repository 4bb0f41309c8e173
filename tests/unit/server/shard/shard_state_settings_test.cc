#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/parts/shard_state.h"
#include "server/shard/shard.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"
#include "tests/unit/server/shard/read_snapshot_fixture.h"

// What a job says of variables by name: optimizers, averages, constraints.
namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ShardStateSettingsTest : public ShardFixture {
 protected:
  // The part of a state that Step() moves.
  std::unique_ptr<ShardState> CreateActive() {
    auto state = ShardState::Create(options_);
    EXPECT_OK(state);
    EXPECT_OK((*state)->Activate(0, {}));
    return *std::move(state);
  }
  // One step in which every gradient is `value`.
  static void Prepare(ShardState& state, int64_t step, float value) {
    const std::vector<PartGradient> gradients = Gradients(value);
    for (int part = 0; part < kParts; ++part) {
      ASSERT_OK(state.updates().Update(
          part, step, absl::MakeConstSpan(&gradients[part], 1)));
    }
    ASSERT_OK(state.updates().MarkPrepared(step + 1, 1));
  }
  static void Step(ShardState& state, int64_t step, float value) {
    Prepare(state, step, value);
    ASSERT_OK(state.updates().Commit(step + 1));
  }
  template <typename T>
  static std::vector<T> Read(const ShardState& state, int part,
                             int tensor = 0) {
    std::vector<std::byte> bytes(kPartSize);
    EXPECT_OK(state.values().Read(part, tensor, absl::MakeSpan(bytes)));
    return FromBytes<T>(bytes);
  }

  void AddOptimizer(const std::string& pattern, OptimizerConfig::Kind kind) {
    VariableOptimizer& other = options_.job.variable_optimizers.emplace_back();
    other.variables = pattern;
    other.optimizer.emplace().kind = kind;
  }
};

TEST_F(ShardStateSettingsTest, EachVariableFollowsItsOwnOptimizerAndRate) {
  AddOptimizer("b", OptimizerConfig::Kind::kMomentum);
  options_.job.variable_optimizers[0].learning_rate = 0.25;
  auto state = CreateActive();

  Step(*state, 0, 1);

  EXPECT_EQ(state->num_tensors(0), 1);
  EXPECT_EQ(state->num_tensors(2), 2);
  EXPECT_THAT(state->SlotNames(),
              ElementsAre(IsEmpty(), ElementsAre("Momentum")));
  EXPECT_THAT(Read<float>(*state, 0), Each(0.5f));   // 1 - 0.5 * 1
  EXPECT_THAT(Read<double>(*state, 2), Each(1.75));  // 2 - 0.25 * 1
  EXPECT_THAT(Read<double>(*state, 2, 1), Each(1));
}

TEST_F(ShardStateSettingsTest, EachAdamHasItsOwnPowers) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  AddOptimizer("b", OptimizerConfig::Kind::kAdam);
  options_.job.variable_optimizers[0].optimizer->beta1 = 0.5;
  auto state = CreateActive();

  Step(*state, 0, 1);

  EXPECT_THAT(state->ScalarNames(),
              ElementsAre("beta1_power", "beta2_power", "beta1_power_1",
                          "beta2_power_1"));
  EXPECT_THAT(state->Scalars(),
              ElementsAre(FloatEq(0.81f), FloatEq(0.999f * 0.999f),
                          FloatEq(0.25f), FloatEq(0.999f * 0.999f)));
}

TEST_F(ShardStateSettingsTest, PatternsThatDoNotFitAreRefused) {
  AddOptimizer("x", OptimizerConfig::Kind::kAdam);
  EXPECT_THAT(ShardState::Create(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("matches no variable")));
  EXPECT_EQ(StateFiles(), 0u);
}

TEST_F(ShardStateSettingsTest, ConstraintHoldsAfterEachUpdate) {
  options_.job.constraints = {{"w", VariableConstraint::Kind::kNonNegative, 0}};
  auto state = CreateActive();

  Step(*state, 0, 8);  // 1 - 4, 2 - 4

  EXPECT_THAT(Read<float>(*state, 0), Each(0));
  EXPECT_THAT(Read<double>(*state, 2), Each(-2));
}

TEST_F(ShardStateSettingsTest, NormOfARowThatIsCutIsRefused) {
  options_.job.constraints = {{"w", VariableConstraint::Kind::kMaxNorm, 1}};
  EXPECT_THAT(ShardState::Create(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parts of whole rows")));
}

class MovingAverageStateTest : public ShardStateSettingsTest,
                               public ::testing::WithParamInterface<SyncMode> {
 protected:
  MovingAverageStateTest() {
    options_.job.mode = GetParam();
    options_.job.moving_average = {0.5, false, {"w"}, true};
  }
};

TEST_P(MovingAverageStateTest, FollowsEveryCommittedStep) {
  auto state = CreateActive();
  EXPECT_THAT(state->SlotNames(),
              ElementsAre(ElementsAre("ExponentialMovingAverage"), IsEmpty()));
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(1));  // the initial value

  Step(*state, 0, -2);  // w is 2
  ASSERT_OK(state->updates().MoveAverages());
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(1.5f));
  ASSERT_OK(state->updates().MoveAverages());
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(1.5f)) << "moved twice";

  Step(*state, 1, -2);  // w is 3
  Step(*state, 2, -2);  // w is 4
  ASSERT_OK(state->updates().MoveAverages());
  // 1.5, then 2.25, then 3.125.
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(3.125f));
}

INSTANTIATE_TEST_SUITE_P(Modes, MovingAverageStateTest,
                         ::testing::Values(SyncMode::kStrict,
                                           SyncMode::kCompatible));

TEST_F(ShardStateSettingsTest, YoungAveragesMoveFastWhereStepsAreCounted) {
  options_.job.moving_average = {0.999, true, {}, true};
  auto state = CreateActive();

  Step(*state, 0, -2);  // w is 2; the decay of step 1 is 2/11
  ASSERT_OK(state->updates().MoveAverages());

  EXPECT_THAT(Read<float>(*state, 0, 1), Each(FloatEq(2 - 2.f / 11)));
}

TEST_F(ShardStateSettingsTest, AverageOfARestoredStateGoesOnFromWhatItWas) {
  options_.job.moving_average.decay = 0.5;
  auto state = *ShardState::Create(options_);
  ASSERT_OK(state->Write(0, 0, 0, BytesOf(std::vector<float>(4, 8))));
  ASSERT_OK(state->Write(0, 1, 0, BytesOf(std::vector<float>(4, 4))));
  ASSERT_OK(state->Activate(30, {}));

  ASSERT_OK(state->updates().MoveAverages());
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(4));

  Step(*state, 30, 0);  // stays 8
  ASSERT_OK(state->updates().MoveAverages());
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(6));
}

TEST_F(ShardStateSettingsTest, AverageSurvivesAKillAtAnyPointOfAStep) {
  options_.job.moving_average.decay = 0.5;
  {
    auto state = CreateActive();
    Step(*state, 0, -2);     // w is 2, the average 1.5
    Prepare(*state, 1, -2);  // w is 3; the step is redone with other values
  }
  auto state = ShardState::Open(options_);
  ASSERT_OK(state);
  ASSERT_OK((*state)->Resume(1));
  Step(**state, 1, -4);  // w is 4
  ASSERT_OK((*state)->updates().MoveAverages());

  EXPECT_THAT(Read<float>(**state, 0, 1), Each(2.75f));
}

TEST_F(ShardStateSettingsTest, SnapshotHoldsTheAverageOfItsStep) {
  options_.job.moving_average = {0.5, false, {"w"}, true};
  auto shard = Shard::Create(options_);
  ASSERT_OK(shard);
  ASSERT_OK((*shard)->Activate(0, {}));
  ASSERT_OK((*shard)->BeginSnapshot());
  std::vector<std::byte> bytes(2 * kPartSize);

  ASSERT_OK(ReadSnapshot(**shard, {0, 2, 0, 2 * kPartSize}, 1,
                         absl::MakeSpan(bytes)));

  EXPECT_THAT(FromBytes<float>(bytes), Each(1));
  EXPECT_THAT(
      ReadSnapshot(**shard, {1, 2, 0, 2 * kPartSize}, 1, absl::MakeSpan(bytes)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no tensor 1")));
}

TEST_F(ShardStateSettingsTest, CopyDuringACommitHasTheAverageOfItsStep) {
  constexpr int64_t kSteps = 500;
  options_.job.moving_average = {0.5, false, {"w"}, true};
  auto shard = Shard::Create(options_);
  ASSERT_OK(shard);
  ASSERT_OK((*shard)->Activate(0, {}));
  std::atomic<bool> done = false;
  std::thread copier([&] {
    while (!done) {
      const auto step = (*shard)->BeginSnapshot();
      if (!step.ok()) continue;  // the step was over
      std::vector<std::byte> bytes(2 * kPartSize);
      EXPECT_OK(ReadSnapshot(**shard, {0, 2, 0, 2 * kPartSize}, 1,
                             absl::MakeSpan(bytes)));
      // w is step + 1, and its average goes half of the way in each step.
      const auto average = static_cast<float>(*step + std::exp2(-*step));
      EXPECT_THAT(FromBytes<float>(bytes), Each(FloatNear(average, 1e-3F)));
    }
  });
  Engine& engine = (*shard)->engine();
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int worker : {0, 1}) {
      EXPECT_OK(engine.AddPush(
          1, {{worker, 1, step, step + 1, 0}, 1, 0, Gradients(-2)}));
    }
    EXPECT_OK(engine.Commit(step + 1, 1));
  }
  done = true;
  copier.join();
}

}  // namespace
}  // namespace lockstep::server
