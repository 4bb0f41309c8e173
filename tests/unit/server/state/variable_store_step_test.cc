// The life of a step: update, prepare, commit.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/variable_store.h"
#include "tests/unit/server/state/variable_store_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using VariableStoreStepTest = VariableStoreFixture;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

TEST_F(VariableStoreStepTest, NextBufferIsInvisibleUntilTheCommit) {
  auto store = CreateActive();
  const std::vector<float> before = Floats(store->Committed(0, 0));

  SetFloats(store->Next(0, 0), {1, 2, 3});
  EXPECT_EQ(Floats(store->Committed(0, 0)), before);
  ASSERT_OK(store->MarkPrepared(1, 4));
  EXPECT_EQ(Floats(store->Committed(0, 0)), before);
  EXPECT_EQ(store->committed_step(), 0);
  EXPECT_EQ(store->record().attempt, 4);
  ASSERT_OK(store->Commit(1));

  EXPECT_EQ(store->committed_step(), 1);
  EXPECT_THAT(Floats(store->Committed(0, 0)), ElementsAre(1, 2, 3));
  EXPECT_EQ(Floats(store->Next(0, 0)), before);
}

TEST_F(VariableStoreStepTest, UpdateRunsTheOptimizerFromBufferToBuffer) {
  auto store = CreateActive();
  const Optimizer optimizer(options_.optimizers[0]);
  const std::vector<float> before = Floats(store->Committed(0, 0));
  const std::vector<float> gradient = {1, 1, 1};
  const ByteSlice slice = {reinterpret_cast<const std::byte*>(gradient.data()),
                           12};
  const GradientSlices slices = {{&slice, 1}};
  ApplyInput input = store->Update(0);
  input.learning_rate = 0.25;
  input.gradients = {&slices, 1};

  ASSERT_OK(optimizer.Apply(input));
  ASSERT_OK(store->MarkPrepared(1, 0));
  ASSERT_OK(store->Commit(1));

  const std::vector<float> after = Floats(store->Committed(0, 0));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(after[i], before[i] - 0.25, 1e-5);
  EXPECT_NEAR(Floats(store->Committed(0, 1))[0], 0.1, 1e-6);
  EXPECT_NEAR(Floats(store->Committed(0, 2))[0], 0.001, 1e-6);
  EXPECT_FLOAT_EQ(store->committed_powers()[0].beta1_power, 0.81f);
}

TEST_F(VariableStoreStepTest, PowersStayUntilTheCommit) {
  auto store = CreateActive();

  ASSERT_OK(store->MarkPrepared(1, 0));
  EXPECT_EQ(store->committed_powers()[0], (AdamPowers{0.9f, 0.999f}));
  ASSERT_OK(store->MarkPrepared(1, 1));  // a second attempt

  ASSERT_OK(store->Commit(1));
  EXPECT_EQ(store->committed_powers()[0],
            NextAdamPowers(options_.optimizers[0], {0.9f, 0.999f}));
}

TEST_F(VariableStoreStepTest, PartWithoutGradientIsCarriedOver) {
  auto store = CreateActive();
  const std::vector<float> value = Floats(store->Committed(1, 0));

  store->CarryOver(1);
  ASSERT_OK(store->MarkPrepared(1, 0));
  ASSERT_OK(store->Commit(1));

  EXPECT_EQ(Floats(store->Committed(1, 0)), value);
  EXPECT_THAT(Floats(store->Committed(1, 1)), ElementsAre(0, 0, 0));
}

TEST_F(VariableStoreStepTest, CommitMayBeRepeated) {
  auto store = CreateActive();
  ASSERT_OK(store->MarkPrepared(1, 0));
  ASSERT_OK(store->Commit(1));
  const StepRecord before = store->record();

  EXPECT_OK(store->Commit(1));

  EXPECT_EQ(store->record(), before);
}

TEST_F(VariableStoreStepTest, StepsOutOfOrderAreRefused) {
  auto store = CreateActive();

  EXPECT_THAT(store->Commit(1), StatusIs(kFailedPrecondition));
  EXPECT_THAT(store->Commit(-1), StatusIs(kFailedPrecondition));
  EXPECT_THAT(store->MarkPrepared(0, 0), StatusIs(kFailedPrecondition));
  EXPECT_THAT(store->MarkPrepared(2, 0), StatusIs(kFailedPrecondition));
  EXPECT_THAT(store->MarkPrepared(1, -1),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(store->MarkPrepared(1, 0));
  EXPECT_THAT(store->Commit(2),
              StatusIs(kFailedPrecondition, HasSubstr("step 1 is prepared")));

  EXPECT_EQ(store->committed_step(), 0);
}

TEST_F(VariableStoreStepTest, NothingIsPreparedOrCommittedBeforeActivation) {
  auto store = Create();

  EXPECT_THAT(store->MarkPrepared(0, 0), StatusIs(kFailedPrecondition));
  EXPECT_THAT(store->Commit(0), StatusIs(kFailedPrecondition));
  EXPECT_THAT(store->Commit(-1), StatusIs(kFailedPrecondition));
}

TEST_F(VariableStoreStepTest, DroppedStepCannotBeCommitted) {
  auto store = CreateActive();
  ASSERT_OK(store->MarkPrepared(1, 0));

  store->DropPrepared();
  store->DropPrepared();

  EXPECT_THAT(store->Commit(1), StatusIs(kFailedPrecondition));
  EXPECT_OK(store->MarkPrepared(1, 1));
}

TEST_F(VariableStoreStepTest, InPlaceHasOneBuffer) {
  options_.in_place = true;
  auto store = CreateActive();

  EXPECT_TRUE(store->in_place());
  SetFloats(store->Next(0, 0), {1, 2, 3});
  store->CarryOver(0);
  EXPECT_THAT(Floats(store->Committed(0, 0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(store->MarkPrepared(1, 0),
              StatusIs(kFailedPrecondition, HasSubstr("in place")));
  EXPECT_THAT(store->Commit(2), StatusIs(kFailedPrecondition));
  ASSERT_OK(store->Commit(1));

  EXPECT_EQ(store->committed_step(), 1);
  EXPECT_EQ(store->committed_powers()[0],
            NextAdamPowers(options_.optimizers[0], {0.9f, 0.999f}));
  EXPECT_THAT(Floats(store->Committed(0, 0)), ElementsAre(1, 2, 3));
}

TEST_F(VariableStoreStepTest, PreparedStepIsCompletedByTheNextProcess) {
  {
    auto store = CreateActive();
    SetFloats(store->Next(0, 0), {1, 2, 3});
    ASSERT_OK(store->MarkPrepared(1, 3));
  }

  auto store = Open();
  EXPECT_EQ(store->record().prepared_step, 1);
  EXPECT_EQ(store->record().attempt, 3);
  ASSERT_OK(store->Commit(1));

  EXPECT_THAT(Floats(store->Committed(0, 0)), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace lockstep::server
