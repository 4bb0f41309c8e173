#include "server/shard/snapshot.h"

#include <cstdint>
#include <limits>
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
using ::testing::HasSubstr;
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
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("a step was committed during the copy")));
}

TEST_F(SnapshotTest, MissingTensorIsRefusedAndTheBufferUntouched) {
  auto state = CreateActive();
  FillProgress progress;
  const auto snapshot = Snapshot::Take(*state, 0, progress);
  ASSERT_OK(snapshot);
  std::vector<std::byte> bytes(kPartSize, std::byte{7});
  // The rule has no slots.
  for (const int tensor : {-1, 1, 99}) {
    EXPECT_THAT(
        (*snapshot)->Read({0, 1, 0, kPartSize}, tensor, absl::MakeSpan(bytes)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no tensor")))
        << tensor;
  }
  EXPECT_THAT((*snapshot)->Read({0, 1, 0, kPartSize}, 0,
                                absl::MakeSpan(bytes).first(8)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("of 8 bytes in parts 0 to 0")));
  EXPECT_THAT(bytes, Each(std::byte{7}));
}

TEST_F(SnapshotTest, KeysBeyondThoseOfThePartAreRefused) {
  auto state = CreateActive();
  FillProgress progress;
  const auto snapshot = Snapshot::Take(*state, 0, progress);
  ASSERT_OK(snapshot);
  EXPECT_OK((*snapshot)->ReadKeys(0, 0, {}));
  std::vector<int64_t> keys(1, 7);
  struct Case {
    int part;
    int64_t first;
  };
  for (const auto& [part, first] :
       {Case{0, 0}, Case{0, 1}, Case{0, -1}, Case{-1, 0}, Case{kParts, 0},
        Case{0, std::numeric_limits<int64_t>::max()},
        Case{0, std::numeric_limits<int64_t>::min()}}) {
    EXPECT_THAT((*snapshot)->ReadKeys(part, first, absl::MakeSpan(keys)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("on; the snapshot has 0")))
        << part << " " << first;
  }
  EXPECT_THAT(keys, ElementsAre(7));
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
