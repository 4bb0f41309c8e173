// The life of a step: update, prepare, commit, and what a killed process
// leaves of it.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

// Makes steps until it is killed, and writes a byte to `progress` before each.
// In step s every byte of every tensor is s.
[[noreturn]] void MakeStepsForEver(VariableStore& store, int progress) {
  for (int64_t step = store.committed_step() + 1;; ++step) {
    if (write(progress, "", 1) != 1) _exit(1);
    for (size_t part = 0; part < store.num_parts(); ++part) {
      for (size_t tensor = 0; tensor < store.num_tensors(part); ++tensor) {
        for (std::byte& b : store.Next(part, tensor)) {
          b = static_cast<std::byte>(step);
        }
      }
    }
    if (!store.MarkPrepared(step, 0).ok() || !store.Commit(step).ok()) _exit(1);
  }
}

// Starts a process that makes steps and kills it once it has begun `steps`.
void KillAfter(const VariableStore::Options& options, int steps) {
  int progress[2];
  ASSERT_EQ(pipe(progress), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = VariableStore::Open(options);
    if (store.ok()) MakeStepsForEver(**store, progress[1]);
    _exit(1);
  }
  close(progress[1]);
  char byte = 0;
  for (int i = 0; i < steps; ++i) EXPECT_EQ(read(progress[0], &byte, 1), 1);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(progress[0]);
}

TEST_F(VariableStoreStepTest, KilledAtAnyInstantItsCommittedStepIsWhole) {
  CreateActive();
  int64_t steps_before = 0;
  for (int round = 0; round < 30; ++round) {
    KillAfter(options_, 2 + 7 * round);

    auto store = Open();
    EXPECT_GT(store->committed_step(), steps_before);
    steps_before = store->committed_step();
    const auto mark = static_cast<std::byte>(store->committed_step());
    for (size_t part = 0; part < store->num_parts(); ++part) {
      for (size_t tensor = 0; tensor < store->num_tensors(part); ++tensor) {
        EXPECT_THAT(store->Committed(part, tensor), ::testing::Each(mark));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::server
