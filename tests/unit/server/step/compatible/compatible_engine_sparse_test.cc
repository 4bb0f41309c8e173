#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/compatible/compatible_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Notes what becomes of part 1, a table of four rows of one float.
class TableUpdater final : public FakePartUpdater {
 public:
  TableUpdater() : FakePartUpdater(2) {}
  size_t part_size(int part) const override { return part == 1 ? 16 : 4; }
  absl::Status UpdateSparse(int part, int64_t,
                            const SparseGradient& mean) override {
    EXPECT_EQ(part, 1);
    means.push_back(mean);
    return status;
  }
  absl::Status BeginSparse(int part) override {
    EXPECT_EQ(part, 1);
    ++begun;
    return absl::OkStatus();
  }

  std::vector<SparseGradient> means;
  int begun = 0;
  absl::Status status;
};

class CompatibleEngineSparseTest : public ::testing::Test {
 protected:
  // One pass of a worker: a dense gradient, and 1 in each of the rows.
  absl::StatusOr<ShardAnswers> Add(int worker, int64_t step, int64_t pass,
                                   std::vector<int64_t> rows) {
    values_.assign(rows.size(), 1);
    Push push = PushOf({worker, 1, step, pass, 0}, 0, 0, 2, 1);
    push.gradients[1] = {{{reinterpret_cast<const std::byte*>(values_.data()),
                           values_.size() * sizeof(float)}},
                         nullptr};
    push.gradients[1].rows = {rows, {static_cast<int64_t>(rows.size()), 1}};
    return shard_.AddPush(1, std::move(push));
  }

  std::vector<float> values_;
  TableUpdater updater_;
  CompatibleEngine shard_{
      2, {{DType::kFloat32}, {DType::kFloat32, 4}}, updater_};
};

TEST_F(CompatibleEngineSparseTest, StepIsWholeUntilRowsOfTheNextAreUpdated) {
  ASSERT_OK(shard_.Take(7, 0));
  EXPECT_EQ(updater_.begun, 1);
  EXPECT_OK(shard_.CheckWhole(0));
  ASSERT_OK(Add(0, 0, 1, {0}));
  EXPECT_OK(shard_.CheckWhole(0));

  ASSERT_OK(Add(1, 0, 1, {0}));

  EXPECT_THAT(shard_.CheckWhole(0), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(CompatibleEngineSparseTest, RowsOfAllWorkersAreUpdatedTogether) {
  ASSERT_OK(shard_.Take(7, 0));
  EXPECT_EQ(updater_.begun, 1);
  ASSERT_OK(Add(0, 0, 1, {0, 2}));
  EXPECT_EQ(shard_.num_accumulated(1), 1);

  const auto answers = Add(1, 0, 1, {2, 3});

  ASSERT_OK(answers);
  ASSERT_THAT(answers->takes, SizeIs(1));
  EXPECT_TRUE(answers->takes[0].prepared);
  ASSERT_THAT(updater_.means, SizeIs(1));
  EXPECT_THAT(updater_.means[0].indices, ElementsAre(0, 2, 3));
}

TEST_F(CompatibleEngineSparseTest, RowThatThePartDoesNotHaveIsRefused) {
  for (const int64_t row : {int64_t{-1}, int64_t{4}}) {
    EXPECT_THAT(Add(0, 0, 1, {1, row}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("must be at least 0 and less than 4")));
  }
  EXPECT_EQ(shard_.num_accumulated(0), 0);
  EXPECT_OK(Add(0, 0, 1, {1}));
}

TEST_F(CompatibleEngineSparseTest, RowsOfAnotherWidthAreRefused) {
  const float values[] = {1, 1};
  Push push = PushOf({0, 1, 0, 1, 0}, 0, 1, 1, 1);
  push.gradients[0].rows = {{1}, {1, 2}};
  push.gradients[0].slices = {
      {reinterpret_cast<const std::byte*>(values), sizeof(values)}};
  EXPECT_THAT(
      shard_.AddPush(1, std::move(push)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows of 1")));
}

TEST_F(CompatibleEngineSparseTest, DenseAndSparseAreNotMixedUp) {
  EXPECT_THAT(shard_.AddPush(1, PushOf({0, 1, 0, 1, 0}, 0, 1, 1, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 1 is dense")));
  Push push = PushOf({0, 1, 0, 1, 0}, 0, 0, 1, 1);
  push.gradients[0].rows = {{0}, {1, 1}};
  EXPECT_THAT(shard_.AddPush(1, std::move(push)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 0 is sparse")));
}

TEST_F(CompatibleEngineSparseTest, FailedUpdateFailsTheTake) {
  updater_.status = absl::InternalError("broken");
  ASSERT_OK(shard_.Take(7, 0));
  ASSERT_OK(Add(0, 0, 1, {0}));
  const auto answers = Add(1, 0, 1, {0});
  ASSERT_OK(answers);
  ASSERT_THAT(answers->takes, SizeIs(1));
  EXPECT_THAT(answers->takes[0].status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("broken")));
}

TEST_F(CompatibleEngineSparseTest, WithoutAChiefGradientsGatherForTheNextTake) {
  ASSERT_OK(shard_.Take(7, 0));
  ASSERT_OK(Add(0, 0, 1, {0}));
  shard_.StopTakes();
  ASSERT_OK(Add(1, 0, 1, {0}));
  ASSERT_OK(Add(2, 0, 1, {0}));
  EXPECT_THAT(updater_.means, IsEmpty());
  EXPECT_EQ(shard_.num_accumulated(1), 3);

  shard_.Activate(0);
  const auto answers = shard_.Take(8, 0);

  ASSERT_OK(answers);
  EXPECT_THAT(answers->takes, SizeIs(1));
  EXPECT_THAT(updater_.means, SizeIs(1));
  EXPECT_EQ(updater_.begun, 2);
}

}  // namespace
}  // namespace lockstep::server
