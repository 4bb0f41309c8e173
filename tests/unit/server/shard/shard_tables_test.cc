// A shard with a table: steps of rows, killed at each point of them.

#include <atomic>
#include <memory>
#include <thread>

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
using ::testing::Each;
using ::testing::ElementsAre;

using Kind = OptimizerConfig::Kind;

// A table of six rows of two floats, all 1, and the vector "b" of two, all 2.
// Two workers, both count; learning rate 0.5.
class ShardTablesTest : public ShardFixture {
 protected:
  ShardTablesTest() {
    const Initializer one = {Initializer::Kind::kConstant, 1, 0};
    options_.variables = {
        {"t", {6, 2}, DType::kFloat32, one, RowCut::kDiv},
        {"b", {2}, DType::kFloat32, {Initializer::Kind::kConstant, 2, 0}}};
    options_.parts = {{0, 0, 12, DType::kFloat32, 2, 1},
                      {1, 0, 2, DType::kFloat32}};
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

  static PartGradient Rows(const std::vector<int64_t>& indices, float value) {
    PartGradient gradient =
        GradientOf(std::vector<float>(2 * indices.size(), value));
    gradient.rows =
        GradientRows{indices, {static_cast<int64_t>(indices.size()), 2}};
    return gradient;
  }
  static absl::StatusOr<ShardAnswers> PushRows(
      Shard& shard, int worker, int64_t step,
      const std::vector<int64_t>& indices, float value = 1,
      int64_t attempt = 1) {
    Push push{{worker, 1, step, step + 1, 0}, attempt, 0, {}};
    push.gradients = {Rows(indices, value), GradientOf<float>({value, value})};
    return shard.engine().AddPush(worker, std::move(push));
  }
  static void PushBoth(Shard& shard, int64_t step,
                       const std::vector<int64_t>& first,
                       const std::vector<int64_t>& second, float value = 1,
                       int64_t attempt = 1) {
    ASSERT_OK(PushRows(shard, 0, step, first, value, attempt));
    ASSERT_OK(PushRows(shard, 1, step, second, value, attempt));
  }
  static std::vector<float> Table(Shard& shard) {
    std::vector<std::byte> bytes(48);
    EXPECT_OK(shard.PullRows(0, {0, 1, 2, 3, 4, 5}, -1, absl::MakeSpan(bytes)));
    return FromBytes<float>(bytes);
  }
  static std::vector<float> Column(Shard& shard) {
    const std::vector<float> table = Table(shard);
    std::vector<float> column;
    for (size_t i = 0; i < table.size(); i += 2) column.push_back(table[i]);
    return column;
  }
};

TEST_F(ShardTablesTest, OnlyRowsWithAGradientChange) {
  auto shard = Create();
  PushBoth(*shard, 0, {1, 4}, {4});
  ASSERT_OK(shard->engine().Commit(1, 1));
  EXPECT_THAT(Column(*shard), ElementsAre(1, 0.5f, 1, 1, 0.5f, 1));
}

TEST_F(ShardTablesTest, ReadersSeeTheCommittedStepUntilTheCommit) {
  auto shard = Create();
  PushBoth(*shard, 0, {0}, {5});
  EXPECT_THAT(Column(*shard), Each(1));
  ASSERT_OK(shard->engine().Commit(1, 1));
  EXPECT_THAT(Column(*shard), ElementsAre(0.5f, 1, 1, 1, 1, 0.5f));
}

TEST_F(ShardTablesTest, AnAttemptIsRedoneFromIntactRows) {
  auto shard = Create();
  PushBoth(*shard, 0, {0, 1}, {1}, 4);
  shard->engine().StartAttempt(0, 2);
  PushBoth(*shard, 0, {1}, {2}, 2, /*attempt=*/2);
  ASSERT_OK(shard->engine().Commit(1, 2));
  EXPECT_THAT(Column(*shard), ElementsAre(1, 0, 0, 1, 1, 1));
}

// The thread sanitizer finds a step record that is read without its lock.
TEST_F(ShardTablesTest, SettingsMayChangeWhileRowsAreUpdated) {
  auto shard = Create();
  std::atomic<bool> over = false;
  std::thread chief([&] {
    for (int64_t revision = 1; !over; ++revision) {
      EXPECT_OK(shard->Activate(0, {}, 0, {.revision = revision}));
    }
  });
  for (int attempt = 1; attempt <= 50; ++attempt) {
    shard->engine().StartAttempt(0, attempt);
    PushBoth(*shard, 0, {0, 1}, {1}, 2, attempt);
  }
  over = true;
  chief.join();

  ASSERT_OK(shard->engine().Commit(1, 50));
  EXPECT_THAT(Column(*shard), ElementsAre(0, 0, 1, 1, 1, 1));
}

TEST_F(ShardTablesTest, AServerKilledBeforeTheCommitHasTheStepBefore) {
  auto shard = Create();
  PushBoth(*shard, 0, {0, 1}, {1}, 4);
  shard = Reopen(std::move(shard), 0, 2);
  EXPECT_THAT(Column(*shard), Each(1));
  PushBoth(*shard, 0, {3}, {}, 2, /*attempt=*/2);
  ASSERT_OK(shard->engine().Commit(1, 2));
  EXPECT_THAT(Column(*shard), ElementsAre(1, 1, 1, 0, 1, 1));
}

TEST_F(ShardTablesTest, APreparedStepIsCommittedAfterARestart) {
  auto shard = Create();
  PushBoth(*shard, 0, {0, 1}, {1}, 2);
  shard = Reopen(std::move(shard), 1);
  EXPECT_THAT(Column(*shard), ElementsAre(0, 0, 1, 1, 1, 1));
}

// The record is written before rows are copied; a process killed between them
// leaves the rows as they were.
TEST_F(ShardTablesTest, ACommitThatWasCutOffIsCompletedOnRestart) {
  options_.job.optimizer.kind = Kind::kMomentum;
  auto shard = Create();
  PushBoth(*shard, 0, {0, 1}, {1}, 2);
  ASSERT_OK(shard->engine().Commit(1, 1));
  const std::vector<float> committed = Table(*shard);
  shard.reset();
  {
    VariableStore::Options store;
    store.directory = options_.state_dir;
    store.job_id = options_.job_id;
    store.variables = options_.variables;
    store.parts = options_.parts;
    store.optimizers = {options_.job.optimizer};
    store.settings.resize(options_.variables.size());
    auto opened = VariableStore::Open(store);
    ASSERT_OK(opened);
    const absl::Span<const std::byte> table = (*opened)->Committed(0, 0);
    std::memset(const_cast<std::byte*>(table.data()), 0, 16);
  }
  auto again = Shard::Open(options_);
  ASSERT_OK(again);
  ASSERT_OK((*again)->Activate(1, {}));
  EXPECT_EQ(Table(**again), committed);
}

TEST_F(ShardTablesTest, SlotsFollowTheirRows) {
  options_.job.optimizer.kind = Kind::kMomentum;
  auto shard = Create();
  for (int64_t step = 0; step < 2; ++step) {
    PushBoth(*shard, step, {2}, {2});
    ASSERT_OK(shard->engine().Commit(step + 1, 1));
  }
  ASSERT_OK(shard->BeginSnapshot());
  const auto range = shard->FindRange(0, 1, 4, 2);
  ASSERT_OK(range);
  std::vector<std::byte> bytes(8);
  ASSERT_OK(ReadSnapshot(*shard, *range, 1, absl::MakeSpan(bytes)));
  EXPECT_THAT(FromBytes<float>(bytes), Each(1.9f));
}

TEST_F(ShardTablesTest, AdamMovesRowsWithoutAGradientToo) {
  options_.job.optimizer.kind = Kind::kAdam;
  auto shard = Create();
  for (int64_t step = 0; step < 2; ++step) {
    PushBoth(*shard, step, {step}, {});
    ASSERT_OK(shard->engine().Commit(step + 1, 1));
  }
  const std::vector<float> column = Column(*shard);
  EXPECT_LT(column[0], 0.5f);  // moved by its own step and the next one's decay
  EXPECT_LT(column[1], 1.0f);
  EXPECT_EQ(column[2], 1.0f);
}

TEST_F(ShardTablesTest, BitsAreThoseOfOnePartHoweverTheTableIsCut) {
  options_.job.optimizer.kind = Kind::kAdagrad;
  options_.variables[0].initializer = {Initializer::Kind::kUniform, -1, 1};
  auto whole = Create();
  PushBoth(*whole, 0, {0, 3, 5}, {1, 3}, 0.3f);
  ASSERT_OK(whole->engine().Commit(1, 1));
  const std::vector<float> expected = Table(*whole);
  whole.reset();

  // Rows 0, 2, 4 and 1, 3, 5.
  options_.variables[0].row_cut = RowCut::kMod;
  options_.parts = {{0, 0, 6, DType::kFloat32, 2, 2},
                    {0, 2, 6, DType::kFloat32, 2, 2}};
  auto cut = Create();
  for (const auto& [worker, rows] :
       std::vector<std::pair<int, std::array<std::vector<int64_t>, 2>>>{
           {0, {{{0}, {1, 2}}}}, {1, {{{}, {0, 1}}}}}) {
    Push push{{worker, 1, 0, 1, 0}, 1, 0, {}};
    push.gradients = {Rows(rows[0], 0.3f), Rows(rows[1], 0.3f)};
    ASSERT_OK(cut->engine().AddPush(worker, std::move(push)));
  }
  ASSERT_OK(cut->engine().Commit(1, 1));
  for (int part = 0; part < 2; ++part) {
    std::vector<std::byte> bytes(24);
    ASSERT_OK(cut->PullRows(part, {0, 1, 2}, 1, absl::MakeSpan(bytes)));
    const std::vector<float> rows = FromBytes<float>(bytes);
    for (int row = 0; row < 3; ++row) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(rows[2 * row + i], expected[2 * (2 * row + part) + i]);
      }
    }
  }
}

TEST_F(ShardTablesTest, WrongGradientsChangeNothing) {
  auto shard = Create();
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(PushRows(*shard, 0, 0, {6}), invalid);
  EXPECT_THAT(PushRows(*shard, 0, 0, {-1}), invalid);
  EXPECT_THAT(PushRows(*shard, 0, 0, {1}, NAN), invalid);
  Push dense{{0, 1, 0, 1, 0}, 1, 0, {GradientOf(std::vector<float>(12))}};
  EXPECT_THAT(shard->engine().AddPush(9, std::move(dense)), invalid);
  Push rows_of_none{{0, 1, 0, 1, 0}, 1, 1, {Rows({0}, 1)}};
  EXPECT_THAT(shard->engine().AddPush(9, std::move(rows_of_none)), invalid);

  PushBoth(*shard, 0, {1}, {1});
  ASSERT_OK(shard->engine().Commit(1, 1));
  EXPECT_THAT(Column(*shard), ElementsAre(1, 0.5f, 1, 1, 1, 1));
}

TEST_F(ShardTablesTest, TablesAreReadByRowsAlone) {
  auto shard = Create();
  std::vector<std::byte> bytes(8);
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(shard->Pull(0, 1, -1), invalid);
  EXPECT_THAT(shard->PullRows(1, {0}, -1, absl::MakeSpan(bytes)), invalid);
  EXPECT_THAT(shard->PullRows(0, {6}, -1, absl::MakeSpan(bytes)), invalid);
  EXPECT_THAT(shard->PullRows(0, {-1}, -1, absl::MakeSpan(bytes)), invalid);
  EXPECT_THAT(shard->PullRows(0, {0, 1}, -1, absl::MakeSpan(bytes)), invalid);
  EXPECT_THAT(shard->PullRows(0, {3}, -1, absl::MakeSpan(bytes)),
              IsOkAndHolds(0));
}

TEST_F(ShardTablesTest, CompatibleModeUpdatesRowsInPlace) {
  options_.job.mode = SyncMode::kCompatible;
  options_.job.initial_tokens = 2;
  auto shard = Create();
  ASSERT_OK(shard->engine().Take(1, 0));
  PushBoth(*shard, 0, {1, 4}, {4});
  EXPECT_THAT(Column(*shard), ElementsAre(1, 0.5f, 1, 1, 0.5f, 1));
}

// Adam decays the slots of all rows before the first gradient is there.
TEST_F(ShardTablesTest, CompatibleStepThatOnlyAdamHasBegunIsCopied) {
  options_.job.mode = SyncMode::kCompatible;
  options_.job.initial_tokens = 2;
  options_.job.optimizer.kind = Kind::kAdam;
  auto shard = Create();

  ASSERT_OK(shard->engine().Take(1, 0));

  EXPECT_OK(shard->BeginSnapshot());
}

// A table of which an average is kept has two buffers, whatever the optimizer.
class AveragedTableTest : public ShardTablesTest,
                          public ::testing::WithParamInterface<Kind> {
 protected:
  AveragedTableTest() {
    options_.job.optimizer.kind = GetParam();
    options_.job.optimizer.momentum = 0;
    options_.job.moving_average = {0.5, false, {"t"}, true};
  }
  static std::vector<float> Average(Shard& shard) {
    const ShardState& state = shard.state();
    EXPECT_OK(shard.state().updates().MoveAverages());
    std::vector<std::byte> bytes(48);
    EXPECT_OK(state.values().Read(0, state.num_tensors(0) - 1,
                                  absl::MakeSpan(bytes)));
    const std::vector<float> all = FromBytes<float>(bytes);
    std::vector<float> column;
    for (size_t i = 0; i < all.size(); i += 2) column.push_back(all[i]);
    return column;
  }
};

TEST_P(AveragedTableTest, AllRowsOfTheAverageMoveInEveryStep) {
  auto shard = Create();
  PushBoth(*shard, 0, {1, 4}, {4}, 2);
  ASSERT_OK(shard->engine().Commit(1, 1));
  EXPECT_THAT(Column(*shard), ElementsAre(1, 0, 1, 1, 0, 1));
  EXPECT_THAT(Average(*shard), ElementsAre(1, 0.5f, 1, 1, 0.5f, 1));
  PushBoth(*shard, 1, {2}, {2}, 2);
  ASSERT_OK(shard->engine().Commit(2, 1));
  EXPECT_THAT(Average(*shard), ElementsAre(1, 0.25f, 0.5f, 1, 0.25f, 1));
}

TEST_P(AveragedTableTest, AServerThatIsKilledKeepsThem) {
  auto shard = Create();
  PushBoth(*shard, 0, {1}, {1}, 2);
  ASSERT_OK(shard->engine().Commit(1, 1));
  PushBoth(*shard, 1, {0, 1}, {1}, 4);  // never committed
  shard = Reopen(std::move(shard), 1, 2);
  EXPECT_THAT(Column(*shard), ElementsAre(1, 0, 1, 1, 1, 1));
  EXPECT_THAT(Average(*shard), ElementsAre(1, 0.5f, 1, 1, 1, 1));
  PushBoth(*shard, 1, {3}, {}, 2, /*attempt=*/2);
  ASSERT_OK(shard->engine().Commit(2, 2));
  EXPECT_THAT(Average(*shard), ElementsAre(1, 0.25f, 1, 0.5f, 1, 1));
}

INSTANTIATE_TEST_SUITE_P(Rules, AveragedTableTest,
                         ::testing::Values(Kind::kGradientDescent,
                                           Kind::kMomentum));

}  // namespace
}  // namespace lockstep::server
