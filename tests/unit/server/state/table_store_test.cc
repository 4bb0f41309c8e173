#include "server/state/table_store.h"

#include <cstring>

#include "gmock/gmock.h"
#include "server/state/init/initializer.h"
#include "tests/unit/server/state/variable_store_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint64_t kSeed = 3;

// A table of at most four rows of two floats, drawn at random, with Adagrad's
// slot, which starts at 0.25.
class TableStoreTest : public VariableStoreFixture {
 protected:
  TableStoreTest() {
    options_.optimizers[0].kind = OptimizerConfig::Kind::kAdagrad;
    options_.optimizers[0].initial_accumulator_value = 0.25;
    options_.settings.resize(1);
    options_.variables = {{"t",
                           {4, 2},
                           DType::kFloat32,
                           {Initializer::Kind::kUniform, -1, 1},
                           RowCut::kKey}};
    options_.parts = {{0, 0, 8, DType::kFloat32, 2, 1, true}};
  }
  std::unique_ptr<VariableStore> CreateReady() {
    auto store = Create();
    EXPECT_OK(store->Initialize(kSeed));
    return store;
  }
  std::unique_ptr<VariableStore> CreateOpen() {
    auto store = CreateReady();
    EXPECT_OK(store->Activate(0, {}));
    return store;
  }

  // A row of a committed tensor.
  static std::vector<float> Row(const VariableStore& store, int64_t row,
                                size_t tensor = 0) {
    return Floats(store.Committed(0, tensor).subspan(row * 8, 8));
  }
  std::vector<float> Initial(int64_t key) const {
    std::vector<float> row(2);
    EXPECT_OK(
        InitialValues::Make(options_.variables[0], kSeed)
            ->FillRow(key, {reinterpret_cast<std::byte*>(row.data()), 8}));
    return row;
  }
  // A step that adds one to the elements of some rows.
  static void Prepare(VariableStore& store, const std::vector<int64_t>& rows) {
    store.tables().BeginRows(0, rows);
    auto* next = reinterpret_cast<float*>(store.Next(0, 0).data());
    for (size_t i = 0; i < 2 * rows.size(); ++i) next[i] += 1;
    store.tables().FinishRows(0);
    EXPECT_OK(store.MarkPrepared(store.committed_step() + 1, 1));
  }
};

TEST_F(TableStoreTest, RowsComeToBeWithTheirInitialValues) {
  auto store = CreateOpen();

  EXPECT_THAT(store->tables().MakeRows(0, {50, 7, 50}, kSeed),
              IsOkAndHolds(ElementsAre(0, 1, 0)));

  EXPECT_EQ(Row(*store, 0), Initial(50));
  EXPECT_EQ(Row(*store, 1), Initial(7));
  EXPECT_THAT(Row(*store, 1, 1), Each(0.25f));
  EXPECT_NE(Initial(50), Initial(7));
  EXPECT_THAT(store->tables().FindRows(0, {7, 50}),
              IsOkAndHolds(ElementsAre(1, 0)));
  EXPECT_THAT(store->tables().FindRows(0, {7, 8}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"t\""), HasSubstr("key 8"))));
}

TEST_F(TableStoreTest, PlacesOfRowsFollowTheirKeys) {
  auto store = CreateOpen();
  ASSERT_OK(store->tables().MakeRows(0, {50, 7, 90, 8}, kSeed));
  Prepare(*store, {1});
  ASSERT_OK(store->Commit(1));

  EXPECT_THAT(store->tables().PlacesByKey(0, {0, 1, 3}), ElementsAre(1, 2, 0));
  EXPECT_THAT(store->tables().PlacesByKey(0, {}), IsEmpty());
}

TEST_F(TableStoreTest, AFullTableSaysSoAndIsAsBefore) {
  auto store = CreateOpen();
  ASSERT_OK(store->tables().MakeRows(0, {1, 2, 3}, kSeed));

  EXPECT_THAT(
      store->tables().MakeRows(0, {1, 4, 5}, kSeed),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("\"t\" grows to 4 rows"), HasSubstr("has 3"),
                     HasSubstr("2 more"), HasSubstr("model.row_limit"))));

  EXPECT_THAT(store->tables().FindRows(0, {4}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no row of key 4 in part 0")));
  EXPECT_THAT(store->tables().MakeRows(0, {5, 1}, kSeed),
              IsOkAndHolds(ElementsAre(3, 0)));
  EXPECT_OK(store->tables().MakeRows(0, {5, 1, 2, 3}, kSeed));
}

TEST_F(TableStoreTest, KeysOfAnotherPartAreRefused) {
  options_.parts = {{0, 0, 4, DType::kFloat32, 2, 2, true},
                    {0, 2, 4, DType::kFloat32, 2, 2, true}};
  auto store = CreateOpen();
  for (int64_t key = 0; key < 20; ++key) {
    const int64_t own = PartOfKey(key, 2);
    EXPECT_THAT(store->tables().MakeRows(1 - own, {key}, kSeed),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not of part")));
  }
  EXPECT_THAT(
      store->tables().MakeRows(0, {-1}, kSeed),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
}

TEST_F(TableStoreTest, OnlyRowsThatACommittedStepChangedAreKept) {
  auto store = CreateOpen();
  ASSERT_OK(store->tables().MakeRows(0, {9, 5, 7}, kSeed));
  EXPECT_THAT(store->tables().KeptRows(0), IsEmpty());

  Prepare(*store, {0, 2});
  EXPECT_THAT(store->tables().KeptRows(0), IsEmpty());
  ASSERT_OK(store->Commit(1));

  EXPECT_THAT(store->tables().KeptRows(0), ElementsAre(Pair(7, 2), Pair(9, 0)));
  EXPECT_EQ(Row(*store, 0)[0], Initial(9)[0] + 1);
  EXPECT_EQ(Row(*store, 1), Initial(5));
}

TEST_F(TableStoreTest, AnotherProcessFindsRowsKeptAndFresh) {
  {
    auto store = CreateOpen();
    ASSERT_OK(store->tables().MakeRows(0, {9, 5}, kSeed));
    Prepare(*store, {0});
    ASSERT_OK(store->Commit(1));
    ASSERT_OK(store->tables().MakeRows(0, {6}, kSeed));
    Prepare(*store, {1, 2});  // killed before the commit
  }
  auto store = Open();
  EXPECT_THAT(store->tables().FindRows(0, {6, 5, 9}),
              IsOkAndHolds(ElementsAre(2, 1, 0)));
  EXPECT_THAT(store->tables().KeptRows(0), ElementsAre(Pair(9, 0)));
  EXPECT_EQ(Row(*store, 1), Initial(5));
  ASSERT_OK(store->Commit(2));
  EXPECT_THAT(store->tables().KeptRows(0),
              ElementsAre(Pair(5, 1), Pair(6, 2), Pair(9, 0)));
}

TEST_F(TableStoreTest, RestoredRowsAreKeptAndOverwrittenOnARetry) {
  auto store = CreateReady();
  const std::vector<float> values = {1, 2, 3, 4};
  const absl::Span<const std::byte> bytes = {
      reinterpret_cast<const std::byte*>(values.data()), 16};
  for (size_t tensor : {0, 1, 0}) {
    ASSERT_OK(store->tables().WriteRows(0, tensor, {8, 3}, kSeed, bytes));
  }
  EXPECT_THAT(store->tables().KeptRows(0), ElementsAre(Pair(3, 1), Pair(8, 0)));
  EXPECT_THAT(Row(*store, 1), ElementsAre(3, 4));
  EXPECT_THAT(Row(*store, 0, 1), ElementsAre(1, 2));

  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(store->tables().WriteRows(0, 0, {8}, kSeed, bytes), invalid);
  EXPECT_THAT(store->tables().WriteRows(0, 2, {8, 3}, kSeed, bytes), invalid);
  EXPECT_THAT(store->tables().WriteRows(1, 0, {8, 3}, kSeed, bytes), invalid);
  ASSERT_OK(store->Activate(0, {}));
  EXPECT_THAT(store->tables().WriteRows(0, 0, {8, 3}, kSeed, bytes),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A restore that was cut off begins anew.
TEST_F(TableStoreTest, InitialisedAgainItHasNoRows) {
  auto store = CreateReady();
  const std::vector<float> values = {1, 2};
  ASSERT_OK(store->tables().WriteRows(
      0, 1, {8}, kSeed,
      {reinterpret_cast<const std::byte*>(values.data()), 8}));
  store.reset();
  store = Open();
  ASSERT_OK(store->Initialize(kSeed));
  EXPECT_THAT(store->tables().KeptRows(0), IsEmpty());
  EXPECT_THAT(store->tables().FindRows(0, {8}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no row of key 8 in part 0")));
  EXPECT_THAT(store->tables().MakeRows(0, {4}, kSeed),
              IsOkAndHolds(ElementsAre(0)));
  EXPECT_THAT(Row(*store, 0, 1), Each(0.25f));
}

TEST_F(TableStoreTest, UpdateOfEveryRowIsRefusedForAGrowingTable) {
  options_.optimizers[0].kind = OptimizerConfig::Kind::kAdam;
  EXPECT_THAT(VariableStore::Create(options_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("grows")));
  options_.optimizers[0].kind = OptimizerConfig::Kind::kLazyAdam;
  EXPECT_OK(VariableStore::Create(options_));
}

}  // namespace
}  // namespace lockstep::server
