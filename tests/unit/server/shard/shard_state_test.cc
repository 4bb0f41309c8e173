#include "server/shard/shard_state.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/shard_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ShardStateTest : public ShardFixture {
 protected:
  std::unique_ptr<ShardState> Create() {
    auto state = ShardState::Create(options_);
    EXPECT_OK(state);
    return state.ok() ? *std::move(state) : nullptr;
  }
  std::unique_ptr<ShardState> CreateActive() {
    auto state = Create();
    EXPECT_OK(state->Activate(0, {}));
    return state;
  }
  template <typename T>
  static std::vector<T> Read(const ShardState& state, int part,
                             int tensor = 0) {
    std::vector<std::byte> bytes(kPartSize);
    EXPECT_OK(state.Read(part, tensor, absl::MakeSpan(bytes)));
    return FromBytes<T>(bytes);
  }
  static int64_t StepOf(const ShardState& state) {
    std::vector<std::byte> bytes(kPartSize);
    return state.Read(0, 0, absl::MakeSpan(bytes)).value_or(-100);
  }
  // Updates all parts from the gradients of two workers.
  static void UpdateAll(ShardState& state, int64_t step, float one,
                        float other) {
    const std::vector<PartGradient> a = Gradients(one);
    const std::vector<PartGradient> b = Gradients(other);
    for (int part = 0; part < kParts; ++part) {
      const PartGradient both[] = {a[part], b[part]};
      EXPECT_THAT(state.Update(part, step, both), IsOkAndHolds(true));
    }
  }
};

TEST_F(ShardStateTest, VariablesStartAsTheirInitializersSay) {
  auto state = CreateActive();

  EXPECT_EQ(state->num_parts(), kParts);
  EXPECT_THAT(Read<float>(*state, 0), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Read<float>(*state, 1), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Read<double>(*state, 2), ElementsAre(2, 2));
  EXPECT_EQ(StepOf(*state), 0);
}

TEST_F(ShardStateTest, StrictUpdateIsPlainArithmetic) {
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->MarkPrepared(1, 1));
  ASSERT_OK(state->Commit(1));

  // 1 - 0.5 * (1 + 3) / 2, and so on.
  EXPECT_THAT(Read<float>(*state, 0), Each(0));
  EXPECT_THAT(Read<double>(*state, 2), Each(1));
  EXPECT_EQ(StepOf(*state), 1);
}

TEST_F(ShardStateTest, LentValuesOfThePreparedStepBecomeTheCommittedOnes) {
  auto state = CreateActive();
  UpdateAll(*state, 0, 1, 3);

  const LentBytes lent = state->LendNext(0);
  ASSERT_OK(state->MarkPrepared(1, 1));
  ASSERT_OK(state->Commit(1));
  int64_t step = 0;
  const LentBytes committed = state->LendCommitted(0, step);

  EXPECT_THAT(FromBytes<float>(lent.bytes), Each(0));
  EXPECT_EQ(committed.bytes.data(), lent.bytes.data());
  EXPECT_EQ(step, 1);
}

TEST_F(ShardStateTest, NextBufferCanBeClaimedOnceItsReadersAreDone) {
  const auto returned = std::make_shared<EventQueue<int>>();
  options_.returned_parts = returned;
  auto state = CreateActive();
  int64_t step = 0;
  LentBytes old = state->LendCommitted(1, step);
  EXPECT_TRUE(state->ClaimNext(1));
  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->MarkPrepared(1, 1));
  ASSERT_OK(state->Commit(1));

  EXPECT_TRUE(state->ClaimNext(0));
  EXPECT_FALSE(state->ClaimNext(1));
  EXPECT_THAT(FromBytes<float>(old.bytes), Each(1));
  old = LentBytes();

  EXPECT_EQ(returned->PopFor(absl::ZeroDuration()), 1);
  EXPECT_EQ(returned->PopFor(absl::ZeroDuration()), std::nullopt);
  EXPECT_TRUE(state->ClaimNext(1));
}

TEST_F(ShardStateTest, LoanOutlivesTheState) {
  auto state = CreateActive();
  int64_t step = 0;
  const LentBytes lent = state->LendCommitted(2, step);

  state.reset();

  EXPECT_THAT(FromBytes<double>(lent.bytes), Each(2));
}

TEST_F(ShardStateTest, InPlaceLoanIsACopy) {
  options_.job.mode = SyncMode::kCompatible;
  auto state = CreateActive();
  int64_t step = 0;
  const LentBytes lent = state->LendCommitted(0, step);

  EXPECT_TRUE(state->ClaimNext(0));
  UpdateAll(*state, 0, 1, 3);

  EXPECT_THAT(FromBytes<float>(lent.bytes), Each(1));
}

TEST_F(ShardStateTest, LearningRateIsThatOfTheStep) {
  options_.job.learning_rate.schedule =
      LearningRateConfig::Schedule::kPiecewiseConstant;
  options_.job.learning_rate.boundaries = {0};
  options_.job.learning_rate.values = {0.5, 0.25};
  auto state = CreateActive();

  for (int64_t step : {0, 1}) {
    UpdateAll(*state, step, 1, 1);
    ASSERT_OK(state->MarkPrepared(step + 1, 1));
    ASSERT_OK(state->Commit(step + 1));
  }

  EXPECT_THAT(Read<float>(*state, 1), Each(0.25f));
}

TEST_F(ShardStateTest, CommittedValuesStayUntilTheCommit) {
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  ASSERT_OK(state->MarkPrepared(1, 1));
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  EXPECT_EQ(StepOf(*state), 0);
}

TEST_F(ShardStateTest, RedoneStepStartsFromTheCommittedValues) {
  auto state = CreateActive();
  UpdateAll(*state, 0, 100, 100);
  ASSERT_OK(state->MarkPrepared(1, 1));

  state->DropPrepared();
  EXPECT_THAT(state->Commit(1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->MarkPrepared(1, 2));
  ASSERT_OK(state->Commit(1));

  EXPECT_THAT(Read<float>(*state, 0), Each(0));
}

TEST_F(ShardStateTest, CompatibleModeUpdatesInPlace) {
  options_.job.mode = SyncMode::kCompatible;
  auto state = CreateActive();

  UpdateAll(*state, 0, 1, 3);

  EXPECT_THAT(Read<float>(*state, 0), Each(0));
  EXPECT_EQ(StepOf(*state), 0);
  EXPECT_OK(state->MarkPrepared(1, 1));
  state->DropPrepared();
  EXPECT_OK(state->Commit(1));
  EXPECT_EQ(StepOf(*state), 1);
}

TEST_F(ShardStateTest, SlotsAreTensorsBesideTheValue) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  options_.job.optimizer.momentum = 0.5;
  auto state = CreateActive();
  EXPECT_EQ(state->num_tensors(0), 2);
  EXPECT_THAT(state->SlotNames(), Each(ElementsAre("Momentum")));
  EXPECT_THAT(state->ScalarNames(), IsEmpty());
  EXPECT_THAT(Read<float>(*state, 0, 1), Each(0));

  for (int64_t step : {0, 1}) {
    UpdateAll(*state, step, 1, 3);
    ASSERT_OK(state->MarkPrepared(step + 1, 1));
    ASSERT_OK(state->Commit(step + 1));
  }

  EXPECT_THAT(Read<float>(*state, 0, 1), Each(3));  // 0.5 * 2 + 2
  EXPECT_THAT(Read<float>(*state, 0), Each(-1.5f));
}

TEST_F(ShardStateTest, AdamPowersGrowWithEveryCommittedStep) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  auto state = CreateActive();
  EXPECT_THAT(state->ScalarNames(), ElementsAre("beta1_power", "beta2_power"));
  EXPECT_THAT(state->Scalars(), ElementsAre(FloatEq(0.9f), FloatEq(0.999f)));

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->MarkPrepared(1, 1));
  EXPECT_THAT(state->Scalars(), ElementsAre(FloatEq(0.9f), FloatEq(0.999f)));
  ASSERT_OK(state->Commit(1));

  EXPECT_THAT(state->Scalars(),
              ElementsAre(FloatEq(0.9f * 0.9f), FloatEq(0.999f * 0.999f)));
}

TEST_F(ShardStateTest, RestoredStateGoesOnWhereItWas) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  auto state = Create();

  const std::vector<float> value = {1, 2, 3, 4};
  const std::vector<float> slot = {5, 6, 7, 8};
  ASSERT_OK(state->Write(1, 0, 0, BytesOf(value)));
  ASSERT_OK(state->Write(1, 2, 0, BytesOf(slot)));
  ASSERT_OK(state->Activate(30, {0.25f, 0.5f}));

  EXPECT_EQ(Read<float>(*state, 1), value);
  EXPECT_EQ(Read<float>(*state, 1, 2), slot);
  EXPECT_THAT(Read<float>(*state, 1, 1), Each(0));
  EXPECT_THAT(state->Scalars(), ElementsAre(0.25f, 0.5f));
  EXPECT_EQ(StepOf(*state), 30);
}

TEST_F(ShardStateTest, OpenStateIsNotOverwritten) {
  auto state = CreateActive();

  EXPECT_THAT(state->Write(0, 0, 0, BytesOf(std::vector<float>(4, 9))),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_THAT(Read<float>(*state, 0), Each(1));
}

TEST_F(ShardStateTest, ActivationAtAnotherStepIsRefused) {
  auto state = CreateActive();

  EXPECT_OK(state->Activate(0, {}));
  EXPECT_THAT(state->Activate(5, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(StepOf(*state), 0);
}

TEST_F(ShardStateTest, WrongScalarsOrStepAreRefused) {
  auto sgd = Create();
  EXPECT_THAT(sgd->Activate(0, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 given; the optimizers have 0")));
  EXPECT_THAT(sgd->Activate(-1, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(sgd->Activate(0, {}));

  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  auto adam = Create();
  EXPECT_THAT(adam->Activate(0, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(adam->Activate(0, {1, 1, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShardStateTest, UnknownTensorsAndOtherLengthsAreRefused) {
  auto state = Create();
  std::vector<std::byte> bytes(kPartSize);
  std::vector<std::byte> shorter(kPartSize - 1);
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);

  for (auto [part, tensor] : std::vector<std::pair<int, int>>{
           {-1, 0}, {kParts, 0}, {0, -1}, {0, 1}}) {
    EXPECT_THAT(state->Read(part, tensor, absl::MakeSpan(bytes)), invalid);
    EXPECT_THAT(state->Write(part, tensor, 0, bytes), invalid);
  }
  EXPECT_THAT(state->Read(0, 0, absl::MakeSpan(shorter)), invalid);
  EXPECT_THAT(state->Write(0, 0, kPartSize, shorter), invalid);
}

TEST_F(ShardStateTest, UpdateTellsOfAMeanThatIsNotFinite) {
  auto state = CreateActive();
  const PartGradient good = GradientOf(std::vector<float>{1, 2, 3, 4});
  const PartGradient bad = GradientOf(std::vector<float>{1, 2, NAN, 4});

  EXPECT_THAT(state->Update(0, 0, std::vector{good, bad}), IsOkAndHolds(false));
  EXPECT_THAT(state->Update(0, 0, std::vector{good, good}), IsOkAndHolds(true));
}

TEST_F(ShardStateTest, NonFiniteElementIsFoundWhereverItIs) {
  options_.variables[0].shape = {4000};
  options_.parts = {{0, 0, 4000, DType::kFloat32}, {1, 0, 2, DType::kFloat64}};
  auto state = Create();
  std::vector<float> values(4000, -std::numeric_limits<float>::max());
  EXPECT_OK(state->CheckFinite(0, GradientOf(values)));

  for (size_t at : {0, 15, 16, 1023, 1024, 3999}) {
    for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> broken = values;
      broken[at] = bad;
      EXPECT_THAT(state->CheckFinite(0, GradientOf(broken)),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("elements 0 to 3999")));
    }
  }
  EXPECT_OK(state->CheckFinite(1, GradientOf(std::vector<double>{1e300, 0})));
  EXPECT_THAT(state->CheckFinite(1, GradientOf(std::vector<double>{0, NAN})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShardStateTest, BFloat16VariableIsUpdatedInBothModes) {
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
    EXPECT_OK(state->CheckFinite(0, both[0]));
    EXPECT_THAT(
        state->CheckFinite(0, GradientOf(std::vector<uint16_t>(8, 0x7f80))),
        StatusIs(absl::StatusCode::kInvalidArgument));
    ASSERT_OK(state->Update(0, 0, both));
    ASSERT_OK(state->MarkPrepared(1, 1));
    ASSERT_OK(state->Commit(1));
    EXPECT_THAT(Read<uint16_t>(*state, 0), Each(0));  // 1 - 0.5 * 2
    EXPECT_OK(state->Remove());
  }
}

TEST_F(ShardStateTest, BFloat16GradientIsHalfAsLongAndForFloat32Alone) {
  auto state = Create();

  EXPECT_THAT(state->GradientSize(0, GradientType::kVariable),
              IsOkAndHolds(kPartSize));
  EXPECT_THAT(state->GradientSize(0, GradientType::kBFloat16),
              IsOkAndHolds(kPartSize / 2));
  EXPECT_THAT(state->GradientSize(2, GradientType::kVariable),
              IsOkAndHolds(kPartSize));
  EXPECT_THAT(state->GradientSize(2, GradientType::kBFloat16),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 2 (\"b\"): gradient type BFLOAT16")));
}

TEST_F(ShardStateTest, BFloat16GradientsAreAveragedWithFloats) {
  auto state = CreateActive();
  // 1 and -2 in turn.
  const PartGradient packed =
      BFloat16GradientOf({0x3f80, 0xc000, 0x3f80, 0xc000});
  const PartGradient floats = GradientOf(std::vector<float>(4, 3));
  const PartGradient both[] = {packed, floats};

  ASSERT_OK(state->Update(0, 0, both));

  EXPECT_THAT(FromBytes<float>(state->LendNext(0).bytes),
              ElementsAre(0, 0.75f, 0, 0.75f));
}

TEST_F(ShardStateTest, NonFiniteBFloat16IsFoundWhereverItIs) {
  options_.variables[0].shape = {4000};
  options_.parts = {{0, 0, 4000, DType::kFloat32}, {1, 0, 2, DType::kFloat64}};
  auto state = Create();
  // The largest.
  const std::vector<uint16_t> values(4000, 0x7f7f);
  EXPECT_OK(state->CheckFinite(0, BFloat16GradientOf(values)));

  for (size_t at : {0, 15, 16, 1023, 1024, 3999}) {
    for (uint16_t bad : {0x7fc0, 0x7f80, 0xff80}) {
      std::vector<uint16_t> broken = values;
      broken[at] = bad;
      EXPECT_THAT(state->CheckFinite(0, BFloat16GradientOf(broken)),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("elements 0 to 3999")));
    }
  }
}

TEST_F(ShardStateTest, FiniteGradientInOddPiecesIsFinite) {
  auto state = Create();
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<std::byte> bytes(kPartSize + 1);
  std::memcpy(bytes.data() + 1, values.data(), kPartSize);

  PartGradient pieces;
  pieces.slices = {{bytes.data() + 1, 5}, {nullptr, 0}, {bytes.data() + 6, 11}};

  EXPECT_OK(state->CheckFinite(0, pieces));
}

TEST_F(ShardStateTest, ServerWithoutPartsNeedsNoFile) {
  options_.parts.clear();
  auto state = CreateActive();

  EXPECT_EQ(state->num_parts(), 0);
  EXPECT_EQ(StateFiles(), 0u);
  EXPECT_OK(state->MarkPrepared(1, 1));
  EXPECT_OK(state->Commit(1));
  EXPECT_OK(state->SetEpoch(3));
  EXPECT_THAT(state->Scalars(), IsEmpty());
  EXPECT_THAT(state->Write(0, 0, 0, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(state->Remove());
}

TEST_F(ShardStateTest, FileOfAnEarlierProcessIsReplaced) {
  {
    auto state = CreateActive();
    UpdateAll(*state, 0, 1, 3);
    ASSERT_OK(state->MarkPrepared(1, 1));
    ASSERT_OK(state->Commit(1));
  }
  ASSERT_EQ(StateFiles(), 1u);

  auto state = CreateActive();

  EXPECT_EQ(StateFiles(), 1u);
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
}

TEST_F(ShardStateTest, RemoveDeletesTheFile) {
  auto state = CreateActive();
  ASSERT_EQ(StateFiles(), 1u);

  EXPECT_OK(state->Remove());

  EXPECT_EQ(StateFiles(), 0u);
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  EXPECT_OK(state->Remove());
}

TEST_F(ShardStateTest, PartThatIsNoSliceOfItsVariableIsRefused) {
  options_.parts[1].count = 5;

  EXPECT_THAT(ShardState::Create(options_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(StateFiles(), 0u);
}

TEST_F(ShardStateTest, ReadNeverSeesHalfAnUpdateOfAPart) {
  auto state = CreateActive();
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      std::vector<std::byte> bytes(kPartSize);
      const auto step = state->Read(0, 0, absl::MakeSpan(bytes));
      // Each step takes 0.5 off.
      const auto wanted = static_cast<float>(1 - 0.5 * *step);
      EXPECT_THAT(FromBytes<float>(bytes), Each(wanted));
    }
  });

  for (int64_t step = 0; step < 200; ++step) {
    UpdateAll(*state, step, 1, 1);
    EXPECT_OK(state->MarkPrepared(step + 1, 1));
    EXPECT_OK(state->Commit(step + 1));
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace lockstep
