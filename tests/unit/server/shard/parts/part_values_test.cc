#include "server/shard/parts/part_values.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_state_fixture.h"

namespace lockstep::server {
namespace {

using ::testing::Each;

using PartValuesTest = ShardStateFixture;

TEST_F(PartValuesTest, LentValuesOfThePreparedStepBecomeTheCommittedOnes) {
  auto state = CreateActive();
  UpdateAll(*state, 0, 1, 3);

  const LentBytes lent = state->values().LendNext(0);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));
  int64_t step = 0;
  const LentBytes committed = state->values().LendCommitted(0, step);

  EXPECT_THAT(FromBytes<float>(lent.bytes), Each(0));
  EXPECT_EQ(committed.bytes.data(), lent.bytes.data());
  EXPECT_EQ(step, 1);
}

TEST_F(PartValuesTest, NextBufferCanBeClaimedOnceItsReadersAreDone) {
  const auto returned = std::make_shared<EventQueue<int>>();
  options_.returned_parts = returned;
  auto state = CreateActive();
  int64_t step = 0;
  LentBytes old = state->values().LendCommitted(1, step);
  EXPECT_TRUE(state->updates().ClaimNext(1));
  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));

  EXPECT_TRUE(state->updates().ClaimNext(0));
  EXPECT_FALSE(state->updates().ClaimNext(1));
  EXPECT_THAT(FromBytes<float>(old.bytes), Each(1));
  old = LentBytes();

  EXPECT_EQ(returned->PopFor(absl::ZeroDuration()), 1);
  EXPECT_EQ(returned->PopFor(absl::ZeroDuration()), std::nullopt);
  EXPECT_TRUE(state->updates().ClaimNext(1));
}

TEST_F(PartValuesTest, LoanOutlivesTheState) {
  auto state = CreateActive();
  int64_t step = 0;
  const LentBytes lent = state->values().LendCommitted(2, step);

  state.reset();

  EXPECT_THAT(FromBytes<double>(lent.bytes), Each(2));
}

TEST_F(PartValuesTest, InPlaceLoanIsACopy) {
  options_.job.mode = SyncMode::kCompatible;
  auto state = CreateActive();
  int64_t step = 0;
  const LentBytes lent = state->values().LendCommitted(0, step);

  EXPECT_TRUE(state->updates().ClaimNext(0));
  UpdateAll(*state, 0, 1, 3);

  EXPECT_THAT(FromBytes<float>(lent.bytes), Each(1));
}

TEST_F(PartValuesTest, ReadNeverSeesHalfAnUpdateOfAPart) {
  auto state = CreateActive();
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      std::vector<std::byte> bytes(kPartSize);
      const auto step = state->values().Read(0, 0, absl::MakeSpan(bytes));
      // Each step takes 0.5 off.
      const auto wanted = static_cast<float>(1 - 0.5 * *step);
      EXPECT_THAT(FromBytes<float>(bytes), Each(wanted));
    }
  });

  for (int64_t step = 0; step < 200; ++step) {
    UpdateAll(*state, step, 1, 1);
    EXPECT_OK(state->updates().MarkPrepared(step + 1, 1));
    EXPECT_OK(state->updates().Commit(step + 1));
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace lockstep::server
