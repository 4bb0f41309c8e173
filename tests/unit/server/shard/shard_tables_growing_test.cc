// A shard with a growing table.

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"
#include "tests/unit/server/shard/read_snapshot_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Keys = std::vector<int64_t>;

// A table of at most four rows of two floats. Two workers, both count; learning
// rate 0.5.
class ShardTablesGrowingTest : public ShardFixture {
 protected:
  ShardTablesGrowingTest() {
    options_.variables = {{"t",
                           {4, 2},
                           DType::kFloat32,
                           {Initializer::Kind::kUniform, -1, 1},
                           RowCut::kKey}};
    options_.parts = {{0, 0, 8, DType::kFloat32, 2, 1, true}};
  }
  std::unique_ptr<Shard> Create() {
    auto shard = Shard::Create(options_);
    EXPECT_OK(shard);
    EXPECT_OK((*shard)->Activate(0, {}));
    return *std::move(shard);
  }
  std::unique_ptr<Shard> Reopen(std::unique_ptr<Shard> killed, int64_t step,
                                int64_t attempt = 0) {
    killed.reset();
    auto shard = Shard::Open(options_);
    EXPECT_OK(shard);
    EXPECT_OK((*shard)->Activate(step, {}, attempt));
    return *std::move(shard);
  }

  static absl::StatusOr<ShardAnswers> PushKeys(Shard& shard, int worker,
                                               int64_t step, const Keys& keys,
                                               float value = 1,
                                               int64_t attempt = 1) {
    Push push{{worker, 1, step, step + 1, 0}, attempt, 0, {}};
    push.gradients = {GradientOf(std::vector<float>(2 * keys.size(), value))};
    push.gradients[0].rows =
        GradientRows{keys, {static_cast<int64_t>(keys.size()), 2}};
    return shard.engine().AddPush(worker, std::move(push));
  }
  static absl::StatusOr<std::vector<float>> Pull(Shard& shard,
                                                 const Keys& keys) {
    std::vector<std::byte> bytes(8 * keys.size());
    LOCKSTEP_RETURN_IF_ERROR(
        shard.PullRows(0, keys, -1, absl::MakeSpan(bytes)).status());
    return FromBytes<float>(bytes);
  }
  // A step of both workers, each with the keys that it has pulled.
  static void Step(Shard& shard, int64_t step, const Keys& first,
                   const Keys& second) {
    ASSERT_OK(Pull(shard, first));
    ASSERT_OK(Pull(shard, second));
    ASSERT_OK(PushKeys(shard, 0, step, first));
    ASSERT_OK(PushKeys(shard, 1, step, second));
    ASSERT_OK(shard.engine().Commit(step + 1, 1));
  }
};

TEST_F(ShardTablesGrowingTest, RowsMoveByTheirKeysInWhateverOrderTheyCame) {
  auto shard = Create();
  const auto before = Pull(*shard, {70, 20});
  ASSERT_OK(before);
  Step(*shard, 0, {20, 70}, {5, 70});

  const auto after = Pull(*shard, {5, 20, 70});
  ASSERT_OK(after);
  EXPECT_EQ((*after)[2], (*before)[2] - 0.5f);  // 20
  EXPECT_EQ((*after)[4], (*before)[0] - 0.5f);  // 70: the mean of two ones
}

TEST_F(ShardTablesGrowingTest, GradientsOfUnreadKeysAreRefused) {
  auto shard = Create();
  ASSERT_OK(Pull(*shard, {1, 2}));
  EXPECT_THAT(PushKeys(*shard, 0, 0, {1, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("key 3")));
  EXPECT_THAT(PushKeys(*shard, 0, 0, {-1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Step(*shard, 0, {1}, {2});  // nothing of the above counts
}

TEST_F(ShardTablesGrowingTest, WhenItIsFullAPullFailsAndAllGoesOnAsBefore) {
  auto shard = Create();
  Step(*shard, 0, {1, 2}, {3});
  EXPECT_THAT(Pull(*shard, {1, 4, 5}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("model.row_limit")));
  EXPECT_THAT(PushKeys(*shard, 0, 1, {4}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Step(*shard, 1, {1, 6}, {3});
}

TEST_F(ShardTablesGrowingTest, KilledServerHasTheSameRowsAgain) {
  auto undisturbed = Create();
  Step(*undisturbed, 0, {8, 3}, {3});
  Step(*undisturbed, 1, {8}, {5});
  const auto expected = Pull(*undisturbed, {3, 5, 8});
  undisturbed.reset();

  // With the rows of the step at hand made, and with the step prepared.
  for (bool prepared : {false, true}) {
    auto shard = Create();
    Step(*shard, 0, {8, 3}, {3});
    ASSERT_OK(Pull(*shard, {5, 8}));
    if (prepared) {
      ASSERT_OK(PushKeys(*shard, 0, 1, {8}));
      ASSERT_OK(PushKeys(*shard, 1, 1, {5}));
    }
    shard = Reopen(std::move(shard), prepared ? 2 : 1, prepared ? 0 : 2);
    if (!prepared) {
      ASSERT_OK(PushKeys(*shard, 0, 1, {8}, 1, 2));
      ASSERT_OK(PushKeys(*shard, 1, 1, {5}, 1, 2));
      ASSERT_OK(shard->engine().Commit(2, 2));
    }
    EXPECT_EQ(Pull(*shard, {3, 5, 8}), expected);
    EXPECT_THAT(shard->BeginSnapshot(), IsOkAndHolds(2));
    EXPECT_THAT((*shard->snapshot())->num_rows(), ElementsAre(3));
  }
}

TEST_F(ShardTablesGrowingTest, ASnapshotHasChangedRowsInTheOrderOfTheirKeys) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  auto shard = Create();
  ASSERT_OK(Pull(*shard, {11}));  // and never a gradient
  Step(*shard, 0, {9, 2}, {9});
  ASSERT_OK(shard->BeginSnapshot());

  EXPECT_THAT((*shard->snapshot())->num_rows(), ElementsAre(2));
  Keys keys(2);
  EXPECT_EQ((*shard->snapshot())->step(), 1);
  EXPECT_OK((*shard->snapshot())->ReadKeys(0, 0, absl::MakeSpan(keys)));
  EXPECT_THAT(keys, ElementsAre(2, 9));
  std::vector<std::byte> bytes(16);
  const auto both = shard->FindRange(0, 1, 0, 4);
  ASSERT_OK(both);
  ASSERT_OK(ReadSnapshot(*shard, *both, 0, absl::MakeSpan(bytes)));
  EXPECT_EQ(FromBytes<float>(bytes), *Pull(*shard, {2, 9}));
  ASSERT_OK(ReadSnapshot(*shard, *both, 1, absl::MakeSpan(bytes)));
  EXPECT_THAT(FromBytes<float>(bytes), ElementsAre(1, 1, 1, 1));
}

TEST_F(ShardTablesGrowingTest, BeyondTheRowsOfASnapshotNothingIsRead) {
  auto shard = Create();
  Step(*shard, 0, {1}, {2});
  ASSERT_OK(shard->BeginSnapshot());
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  for (const auto& [first, count] : std::vector<std::pair<int, int>>{
           {0, 6}, {4, 2}, {6, 2}, {2, 4}, {0, 0}}) {
    const auto range = shard->FindRange(0, 1, first, count);
    ASSERT_OK(range);
    std::vector<std::byte> bytes(range->size);
    EXPECT_THAT(ReadSnapshot(*shard, *range, 0, absl::MakeSpan(bytes)),
                invalid);
  }
  for (const auto& [part, first, count] :
       std::vector<std::array<int, 3>>{{0, 0, 3},
                                       {0, 2, 1},
                                       {0, -1, 1},
                                       {0, 3, 0},
                                       {1, 0, 1},
                                       {-1, 0, 1}}) {
    Keys keys(count);
    EXPECT_THAT(
        (*shard->snapshot())->ReadKeys(part, first, absl::MakeSpan(keys)),
        invalid);
  }
}

TEST_F(ShardTablesGrowingTest, ValuesDoNotDependOnHowTheTableIsCut) {
  options_.variables[0].shape[0] = 40;
  options_.parts = {{0, 0, 80, DType::kFloat32, 2, 1, true}};
  Keys keys;
  for (int64_t key = 0; key < 10; ++key) keys.push_back(1000 * key);
  auto whole = Create();
  const auto expected = Pull(*whole, keys);
  ASSERT_OK(expected);
  whole.reset();

  options_.parts = {{0, 0, 40, DType::kFloat32, 2, 2, true},
                    {0, 2, 40, DType::kFloat32, 2, 2, true}};
  auto cut = Create();
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<std::byte> bytes(8);
    ASSERT_OK(cut->PullRows(static_cast<int>(PartOfKey(keys[i], 2)), {keys[i]},
                            -1, absl::MakeSpan(bytes)));
    EXPECT_THAT(FromBytes<float>(bytes),
                ElementsAre((*expected)[2 * i], (*expected)[2 * i + 1]));
  }
}

TEST_F(ShardTablesGrowingTest, RowsAreRestoredByTheirKeysAlone) {
  auto created = Shard::Create(options_);
  ASSERT_OK(created);
  Shard& shard = **created;
  const std::vector<float> values = {1, 2, 3, 4};
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(shard.state().Write(0, 0, 0, BytesOf(values)), invalid);
  EXPECT_THAT(shard.state().WriteRows(1, 0, {6, 4}, BytesOf(values)), invalid);
  EXPECT_THAT(shard.state().WriteRows(0, -1, {6, 4}, BytesOf(values)), invalid);
  ASSERT_OK(shard.state().WriteRows(0, 0, {6, 4}, BytesOf(values)));
  ASSERT_OK(shard.Activate(7, {}));
  EXPECT_THAT(Pull(shard, {4, 6}), IsOkAndHolds(ElementsAre(3, 4, 1, 2)));
}

}  // namespace
}  // namespace lockstep::server
