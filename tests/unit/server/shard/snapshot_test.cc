#include "server/shard/snapshot.h"

#include <memory>
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

using SnapshotTest = ShardStateFixture;

TEST_F(SnapshotTest, StaysAsItWasWhenTheStateMovesOn) {
  auto state = CreateActive();
  FillProgress progress;
  const auto snapshot = Snapshot::Take(*state, 0, progress);
  ASSERT_OK(snapshot);

  UpdateAll(*state, 0, 1, 3);
  ASSERT_OK(state->updates().MarkPrepared(1, 1));
  ASSERT_OK(state->updates().Commit(1));

  std::vector<std::byte> bytes(2 * kPartSize);
  ASSERT_OK(
      (*snapshot)->Read({0, 2, 0, 2 * kPartSize}, 0, absl::MakeSpan(bytes)));
  EXPECT_EQ((*snapshot)->step(), 0);
  EXPECT_THAT(FromBytes<float>(bytes), Each(1));
  EXPECT_THAT((*snapshot)->num_rows(), ElementsAre(0, 0, 0));
  EXPECT_EQ(progress.done(), progress.total());
}

TEST_F(SnapshotTest, CopyOfAnotherStepFails) {
  auto state = CreateActive();
  FillProgress progress;

  EXPECT_THAT(Snapshot::Take(*state, 7, progress),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(SnapshotTest, IsCutOffWhenTheProcessEnds) {
  auto state = CreateActive();
  FillProgress progress;
  progress.Stop();

  EXPECT_THAT(Snapshot::Take(*state, 0, progress),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep::server
