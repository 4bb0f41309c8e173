#include "server/shard/parts/shard_state.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_state_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using ShardStateTest = ShardStateFixture;

TEST_F(ShardStateTest, VariablesStartAsTheirInitializersSay) {
  auto state = CreateActive();

  EXPECT_EQ(state->num_parts(), kParts);
  EXPECT_THAT(Read<float>(*state, 0), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Read<float>(*state, 1), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(Read<double>(*state, 2), ElementsAre(2, 2));
  EXPECT_EQ(StepOf(*state), 0);
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
  EXPECT_THAT(sgd->CheckOpening(0, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(sgd->CheckOpening(0, {}));
  EXPECT_THAT(sgd->Activate(0, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 given; the optimizers have 0")));
  EXPECT_THAT(sgd->Activate(-1, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(sgd->Activate(0, {}));
  EXPECT_OK(sgd->CheckOpening(0, {1})) << "scalars of an open state are unused";
  EXPECT_THAT(sgd->CheckOpening(1, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  auto adam = Create();
  EXPECT_THAT(adam->Activate(0, {1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(adam->Activate(0, {1, 1, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ShardStateTest, UpdatesOfEachVariableAreScalarsOfPyTorchsRules) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  auto state = CreateActive();
  ASSERT_THAT(state->ScalarNames(), Not(IsEmpty()));
  EXPECT_THAT(state->ScalarNames(), Each(EndsWith("/step")));
  EXPECT_THAT(state->Scalars(), Each(0));

  UpdateAll(*state, 0, 1, 3);
  EXPECT_THAT(state->Scalars(), Each(0));
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));
  EXPECT_THAT(state->Scalars(), Each(1));

  // A redone step counts once.
  UpdateAll(*state, 1, 1, 3);
  UpdateAll(*state, 1, 2, 3);
  ASSERT_OK(state->updates().MarkPrepared(2, 2));
  ASSERT_OK(state->updates().Commit(2));
  EXPECT_THAT(state->Scalars(), Each(2));
}

TEST_F(ShardStateTest, UpdatesOutliveTheProcessAndComeFromCheckpoints) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdamTorch;
  std::vector<float> scalars;
  {
    auto state = Create();
    scalars.assign(state->ScalarNames().size(), 40);
    scalars[0] = 16777216;
    ASSERT_OK(state->Activate(40, scalars));
    EXPECT_EQ(state->Scalars(), scalars);
    UpdateAll(*state, 40, 1, 3);
    ASSERT_OK(state->updates().MarkPrepared(41, 1));
    ASSERT_OK(state->updates().Commit(41));
    UpdateAll(*state, 41, 1, 3);  // killed before the step is prepared
  }

  const auto again = ShardState::Open(options_);

  ASSERT_OK(again);
  ASSERT_OK((*again)->Resume(41));
  for (float& each : scalars) each = std::min(each + 1, 16777216.0f);
  EXPECT_EQ((*again)->Scalars(), scalars);
}

TEST_F(ShardStateTest, UpdatesThatCannotBeAreRefused) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  auto state = Create();
  const size_t count = state->ScalarNames().size();
  for (const float bad : {-1.0f, 3e7f, std::nanf("")}) {
    EXPECT_THAT(state->Activate(1, std::vector<float>(count, bad)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the updates of a variable are")));
  }
  EXPECT_OK(state->Activate(1, std::vector<float>(count, 1)));
}

TEST_F(ShardStateTest, UnknownTensorsAndOtherLengthsAreRefused) {
  auto state = Create();
  std::vector<std::byte> bytes(kPartSize);
  std::vector<std::byte> shorter(kPartSize - 1);
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);

  for (auto [part, tensor] : std::vector<std::pair<int, int>>{
           {-1, 0}, {kParts, 0}, {0, -1}, {0, 1}}) {
    EXPECT_THAT(state->values().Read(part, tensor, absl::MakeSpan(bytes)),
                invalid);
    EXPECT_THAT(state->Write(part, tensor, 0, bytes), invalid);
  }
  EXPECT_THAT(state->values().Read(0, 0, absl::MakeSpan(shorter)), invalid);
  EXPECT_THAT(state->Write(0, 0, kPartSize, shorter), invalid);
}

TEST_F(ShardStateTest, ServerWithoutPartsNeedsNoFile) {
  options_.parts.clear();
  auto state = CreateActive();

  EXPECT_EQ(state->num_parts(), 0);
  EXPECT_EQ(StateFiles(), 0u);
  EXPECT_OK(state->updates().MarkPrepared(1, 1));
  EXPECT_OK(state->updates().Commit(1));
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
    ASSERT_OK(state->updates().MarkPrepared(1, 1));
    ASSERT_OK(state->updates().Commit(1));
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

}  // namespace
}  // namespace lockstep::server
