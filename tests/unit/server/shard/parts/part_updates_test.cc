#include "server/shard/parts/part_updates.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_state_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using PartUpdatesTest = ShardStateFixture;

TEST_F(PartUpdatesTest, StrictUpdateIsPlainArithmetic) {
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));

  // 1 - 0.5 * (1 + 3) / 2, and so on.
  EXPECT_THAT(Read<float>(*state, 0), Each(0));
  EXPECT_THAT(Read<double>(*state, 2), Each(1));
  EXPECT_EQ(StepOf(*state), 1);
}

TEST_F(PartUpdatesTest, LearningRateIsThatOfTheStep) {
  options_.job.learning_rate.schedule =
      LearningRateConfig::Schedule::kPiecewiseConstant;
  options_.job.learning_rate.boundaries = {0};
  options_.job.learning_rate.values = {0.5, 0.25};
  auto state = CreateActive();

  for (int64_t step : {0, 1}) {
    UpdateAll(*state, step, 1, 1);
    ASSERT_OK(state->updates().MarkPrepared(step + 1, 1));
    ASSERT_OK(state->updates().Commit(step + 1));
  }

  EXPECT_THAT(Read<float>(*state, 1), Each(0.25f));
}

TEST_F(PartUpdatesTest, BuffersMoveByTheMeanWhateverTheRateIs) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  options_.job.learning_rate.base = 1e-3;
  options_.variables[0].buffer = true;
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));

  EXPECT_THAT(Read<float>(*state, 0), Each(1 - 2));
}

TEST_F(PartUpdatesTest, CommittedValuesStayUntilTheCommit) {
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  EXPECT_EQ(StepOf(*state), 0);
}

TEST_F(PartUpdatesTest, RedoneStepStartsFromTheCommittedValues) {
  auto state = CreateActive();
  UpdateAll(*state, 0, 100, 100);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));

  state->updates().DropPrepared();
  EXPECT_THAT(state->updates().Commit(1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 2));
  ASSERT_OK(state->updates().Commit(1));

  EXPECT_THAT(Read<float>(*state, 0), Each(0));
}

TEST_F(PartUpdatesTest, CompatibleModeUpdatesInPlace) {
  options_.job.mode = SyncMode::kCompatible;
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);

  EXPECT_THAT(Read<float>(*state, 0), Each(0));
  EXPECT_EQ(StepOf(*state), 0);
  EXPECT_OK(state->updates().MarkPrepared(1, 1));
  state->updates().DropPrepared();
  EXPECT_OK(state->updates().Commit(1));
  EXPECT_EQ(StepOf(*state), 1);
}

TEST_F(PartUpdatesTest, SlotsAreTensorsBesideTheValue) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  options_.job.optimizer.momentum = 0.5;
  auto state = CreateActive();
  EXPECT_EQ(state->num_tensors(0), 2);
  EXPECT_THAT(state->SlotNames(), Each(ElementsAre("Momentum")));
  EXPECT_THAT(state->ScalarNames(), IsEmpty());
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(0));

  for (int64_t step : {0, 1}) {
    UpdateAll(*state, step, 1, 3);
    ASSERT_OK(state->updates().MarkPrepared(step + 1, 1));
    ASSERT_OK(state->updates().Commit(step + 1));
  }

  EXPECT_THAT(Read<float>(*state, 0, 1), Each(3));  // 0.5 * 2 + 2
  EXPECT_THAT(Read<float>(*state, 0), Each(-1.5f));
}

TEST_F(PartUpdatesTest, AdamPowersGrowWithEveryCommittedStep) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  auto state = CreateActive();
  EXPECT_THAT(state->ScalarNames(), ElementsAre("beta1_power", "beta2_power"));
  EXPECT_THAT(state->Scalars(), ElementsAre(FloatEq(0.9f), FloatEq(0.999f)));

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  EXPECT_THAT(state->Scalars(), ElementsAre(FloatEq(0.9f), FloatEq(0.999f)));
  ASSERT_OK(state->updates().Commit(1));

  EXPECT_THAT(state->Scalars(),
              ElementsAre(FloatEq(0.9f * 0.9f), FloatEq(0.999f * 0.999f)));
}

TEST_F(PartUpdatesTest, UpdateTellsOfAMeanThatIsNotFinite) {
  auto state = CreateActive();
  const PartGradient good = GradientOf(std::vector<float>{1, 2, 3, 4});
  const PartGradient bad = GradientOf(std::vector<float>{1, 2, NAN, 4});

  EXPECT_THAT(state->updates().Update(0, 0, std::vector{good, bad}),
              IsOkAndHolds(false));
  EXPECT_THAT(state->updates().Update(0, 0, std::vector{good, good}),
              IsOkAndHolds(true));
}

TEST_F(PartUpdatesTest, NonFiniteElementIsFoundWhereverItIs) {
  options_.variables[0].shape = {4000};
  options_.parts = {{0, 0, 4000, DType::kFloat32}, {1, 0, 2, DType::kFloat64}};
  auto state = Create();
  std::vector<float> values(4000, -std::numeric_limits<float>::max());
  EXPECT_OK(state->updates().CheckFinite(0, GradientOf(values)));

  for (size_t at : {0, 15, 16, 1023, 1024, 3999}) {
    for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> broken = values;
      broken[at] = bad;
      EXPECT_THAT(state->updates().CheckFinite(0, GradientOf(broken)),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("elements 0 to 3999")));
    }
  }
  EXPECT_OK(state->updates().CheckFinite(
      1, GradientOf(std::vector<double>{1e300, 0})));
  EXPECT_THAT(
      state->updates().CheckFinite(1, GradientOf(std::vector<double>{0, NAN})),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PartUpdatesTest, BFloat16VariableIsUpdatedInBothModes) {
  for (const SyncMode mode : {SyncMode::kStrict, SyncMode::kCompatible}) {
    options_.job.mode = mode;
    options_.job.moving_average.decay = 0.5;
    options_.variables[0].dtype = DType::kBFloat16;
    options_.parts = {{0, 0, 8, DType::kBFloat16}};
    auto state = CreateActive();
    EXPECT_THAT(Read<uint16_t>(*state, 0), Each(0x3f80));  // 1
    const PartGradient both[] = {
        GradientOf(std::vector<uint16_t>(8, 0x3f80)),
        GradientOf(std::vector<uint16_t>(8, 0x4040))};  // 1 and 3
    EXPECT_OK(state->updates().CheckFinite(0, both[0]));
    EXPECT_THAT(state->updates().CheckFinite(
                    0, GradientOf(std::vector<uint16_t>(8, 0x7f80))),
                StatusIs(absl::StatusCode::kInvalidArgument));
    ASSERT_OK(state->updates().Update(0, 0, both));
    ASSERT_OK(state->updates().MarkPrepared(1, 1));
    ASSERT_OK(state->updates().Commit(1));
    EXPECT_THAT(Read<uint16_t>(*state, 0), Each(0));  // 1 - 0.5 * 2
    EXPECT_OK(state->Remove());
  }
}

TEST_F(PartUpdatesTest, BFloat16GradientIsHalfAsLongAndForFloat32Alone) {
  auto state = Create();

  EXPECT_THAT(state->updates().GradientSize(0, GradientType::kVariable),
              IsOkAndHolds(kPartSize));
  EXPECT_THAT(state->updates().GradientSize(0, GradientType::kBFloat16),
              IsOkAndHolds(kPartSize / 2));
  EXPECT_THAT(state->updates().GradientSize(2, GradientType::kVariable),
              IsOkAndHolds(kPartSize));
  EXPECT_THAT(state->updates().GradientSize(2, GradientType::kBFloat16),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 2 (\"b\"): gradient type BFLOAT16")));
}

TEST_F(PartUpdatesTest, BFloat16GradientsAreAveragedWithFloats) {
  auto state = CreateActive();
  // 1 and -2 in turn.
  const PartGradient packed =
      BFloat16GradientOf({0x3f80, 0xc000, 0x3f80, 0xc000});
  const PartGradient floats = GradientOf(std::vector<float>(4, 3));
  const PartGradient both[] = {packed, floats};

  ASSERT_OK(state->updates().Update(0, 0, both));

  EXPECT_THAT(FromBytes<float>(state->values().LendNext(0).bytes),
              ElementsAre(0, 0.75f, 0, 0.75f));
}

TEST_F(PartUpdatesTest, NonFiniteBFloat16IsFoundWhereverItIs) {
  options_.variables[0].shape = {4000};
  options_.parts = {{0, 0, 4000, DType::kFloat32}, {1, 0, 2, DType::kFloat64}};
  auto state = Create();
  // The largest.
  const std::vector<uint16_t> values(4000, 0x7f7f);
  EXPECT_OK(state->updates().CheckFinite(0, BFloat16GradientOf(values)));

  for (size_t at : {0, 15, 16, 1023, 1024, 3999}) {
    for (uint16_t bad : {0x7fc0, 0x7f80, 0xff80}) {
      std::vector<uint16_t> broken = values;
      broken[at] = bad;
      EXPECT_THAT(state->updates().CheckFinite(0, BFloat16GradientOf(broken)),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("elements 0 to 3999")));
    }
  }
}

TEST_F(PartUpdatesTest, FiniteGradientInOddPiecesIsFinite) {
  auto state = Create();
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<std::byte> bytes(kPartSize + 1);
  std::memcpy(bytes.data() + 1, values.data(), kPartSize);

  PartGradient pieces;
  pieces.slices = {{bytes.data() + 1, 5}, {nullptr, 0}, {bytes.data() + 6, 11}};

  EXPECT_OK(state->updates().CheckFinite(0, pieces));
}

TEST_F(PartUpdatesTest, AbsentGradientCountsAsZeros) {
  auto state = CreateActive();

  for (int part = 0; part < kParts; ++part) {
    EXPECT_THAT(state->updates().Update(
                    part, 0, std::vector{AbsentGradient(), Gradients(4)[part]}),
                IsOkAndHolds(true));
  }
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));

  EXPECT_THAT(Read<float>(*state, 0), Each(0));  // 1 - 0.5 * 4 / 2
  EXPECT_THAT(Read<double>(*state, 2), Each(1));
}

// After a step with gradients, so that momentum would move the value.
TEST_F(PartUpdatesTest, PartWithoutAGradientKeepsValueSlotsAndCount) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdamTorch;
  auto state = CreateActive();
  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));
  const std::vector<float> value = Read<float>(*state, 0);
  const std::vector<float> m = Read<float>(*state, 0, 1);
  const std::vector<float> v = Read<float>(*state, 0, 2);
  EXPECT_THAT(state->Scalars(), ElementsAre(1, 1));

  for (int64_t step : {1, 2, 3}) {
    for (int part = 0; part < kParts; ++part) {
      // "w" has none; "b" has one in each of the steps.
      const PartGradient second =
          part < 2 ? AbsentGradient() : Gradients(1)[part];
      EXPECT_THAT(state->updates().Update(
                      part, step, std::vector{AbsentGradient(), second}),
                  IsOkAndHolds(true));
    }
    ASSERT_OK(state->updates().MarkPrepared(step + 1, 1));
    ASSERT_OK(state->updates().Commit(step + 1));
  }

  EXPECT_EQ(Read<float>(*state, 0), value);
  EXPECT_EQ(Read<float>(*state, 0, 1), m);
  EXPECT_EQ(Read<float>(*state, 0, 2), v);
  EXPECT_NE(m[0], 0);
  EXPECT_THAT(state->Scalars(), ElementsAre(1, 4));
}

// In compatible mode workers push a gradient of each variable.
TEST_F(PartUpdatesTest, UntrainedVariableKeepsItsValueWhateverIsPushed) {
  options_.job.untrained = {"w"};
  options_.job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  for (const SyncMode mode : {SyncMode::kStrict, SyncMode::kCompatible}) {
    options_.job.mode = mode;
    auto state = CreateActive();
    for (const int64_t step : {0, 1}) {
      UpdateAll(*state, step, 1, 3);
      ASSERT_OK(state->updates().MarkPrepared(step + 1, 1));
      ASSERT_OK(state->updates().Commit(step + 1));
    }

    EXPECT_THAT(Read<float>(*state, 0), Each(1));
    // 0.9 is a float.
    EXPECT_THAT(Read<double>(*state, 2),
                Each(::testing::DoubleNear(2 - 0.5 * 2 - 0.5 * 3.8, 1e-6)));
    ASSERT_OK(state->Remove());
  }
}

TEST_F(PartUpdatesTest, RedoneStepMayHaveTheGradientThatTheFirstAttemptLacked) {
  auto state = CreateActive();
  const std::vector<PartGradient> none = {AbsentGradient(), AbsentGradient()};
  for (int part = 0; part < kParts; ++part) {
    EXPECT_OK(state->updates().Update(part, 0, none));
  }
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  state->updates().DropPrepared();

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 2));
  ASSERT_OK(state->updates().Commit(1));

  EXPECT_THAT(Read<float>(*state, 0), Each(0));
}

}  // namespace
}  // namespace lockstep::server
