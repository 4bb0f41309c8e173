// Two mirrors with a table: one sums its rows, the other takes the mean.

#include <memory>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kTable = 0;
constexpr int kVector = 1;

// A table of six rows of two floats, all 1, and the vector "b" of two, all 2.
// Two workers.
class ShardMirroredTablesTest : public ShardFixture {
 protected:
  ShardMirroredTablesTest() {
    options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
    options_.variables = {
        {"t",
         {6, 2},
         DType::kFloat32,
         {Initializer::Kind::kConstant, 1, 0},
         RowCut::kDiv},
        {"b", {2}, DType::kFloat32, {Initializer::Kind::kConstant, 2, 0}}};
    options_.parts = {{0, 0, 12, DType::kFloat32, 2, 1},
                      {1, 0, 2, DType::kFloat32}};
  }

  // A server that is alone.
  std::unique_ptr<Shard> CreateAlone() {
    ShardState::Options options = options_;
    options.job_id = "alone";  // names the file of the state
    return Created(options);
  }

  // Mirror 0 sums the table, mirror 1 the vector.
  std::unique_ptr<Shard> CreateMirror(int index) {
    ShardState::Options options = options_;
    options.job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
    options.task_index = index;
    options.parts[1 - index].reducer = 1 - index;
    return Created(options);
  }

  // `worker` has a gradient of these rows; none: its pass has no gradient of
  // the table.
  static void Push(Shard& shard, std::vector<int> parts, int64_t step,
                   int worker, const std::optional<std::vector<int64_t>>& ids) {
    for (const int part : parts) {
      server::Push push{{worker, 1, step, step + 1, 0}, 1, part, {}};
      const float value = static_cast<float>(worker) + 0.3f;
      if (part == kVector) {
        push.gradients = {GradientOf<float>({value, -value})};
      } else if (!ids.has_value()) {
        push.gradients = {AbsentGradient()};
      } else {
        push.gradients = {
            GradientOf(std::vector<float>(2 * ids->size(), value))};
        push.gradients[0].rows =
            GradientRows{*ids, {static_cast<int64_t>(ids->size()), 2}};
      }
      ASSERT_OK(shard.engine().AddPush(worker, std::move(push)));
    }
  }

  // What the mirrors exchange.
  static absl::StatusOr<ShardAnswers> Exchange(Shard& from, Shard& to,
                                               int part) {
    const int64_t step = from.engine().step();
    absl::StatusOr<std::optional<std::vector<PartGradient>>> means =
        from.engine().Means(step, 1, part, 1);
    EXPECT_OK(means);
    EXPECT_TRUE(means->has_value());
    return to.engine().AddMeans(step, 1, part, **means);
  }

  static std::vector<float> Values(Shard& shard) {
    std::vector<std::byte> bytes(48);
    EXPECT_OK(shard.PullRows(0, {0, 1, 2, 3, 4, 5}, -1, absl::MakeSpan(bytes)));
    std::vector<float> values = FromBytes<float>(bytes);
    const auto rest = shard.Pull(kVector, 1, shard.engine().step());
    EXPECT_OK(rest);
    for (const float value : FromBytes<float>(rest->parts[0].bytes)) {
      values.push_back(value);
    }
    return values;
  }

 private:
  static std::unique_ptr<Shard> Created(const ShardState::Options& options) {
    auto shard = Shard::Create(options);
    EXPECT_OK(shard);
    EXPECT_OK((*shard)->Activate(0, {}));
    return *std::move(shard);
  }
};

TEST_F(ShardMirroredTablesTest, HaveTheBitsOfAServerThatIsAlone) {
  for (const bool limited : {false, true}) {
    if (limited) {
      options_.job.clipping.kind = ClippingConfig::Kind::kMeanGlobalNorm;
      options_.job.clipping.limit = 0.7;
    }
    auto alone = CreateAlone();
    auto first = CreateMirror(0);
    auto second = CreateMirror(1);
    const std::vector<std::optional<std::vector<int64_t>>> rows[] = {
        {{{0, 3}}, {{3, 5}}},
        {{{}}, {{2}}},
        {std::nullopt, {{1, 2}}},
        {std::nullopt, std::nullopt},
        {{{}}, {{}}}};

    for (int64_t step = 0; step < std::ssize(rows); ++step) {
      for (const int worker : {0, 1}) {
        Push(*alone, {kTable, kVector}, step, worker, rows[step][worker]);
        Push(*first, {kTable}, step, worker, rows[step][worker]);
        Push(*second, {kVector}, step, worker, rows[step][worker]);
      }
      ASSERT_OK(Exchange(*first, *second, kTable));
      ASSERT_OK(Exchange(*second, *first, kVector));

      for (Shard* shard : {alone.get(), first.get(), second.get()}) {
        ASSERT_OK(shard->engine().Commit(step + 1, 1)) << step;
      }
      EXPECT_EQ(Values(*first), Values(*alone)) << step;
      EXPECT_EQ(Values(*second), Values(*alone)) << step;
    }
  }
}

TEST_F(ShardMirroredTablesTest, MeansThatDoNotFitTheTableChangeNothing) {
  auto mirror = CreateMirror(1);
  const auto mean_of = [](std::vector<int64_t> ids, size_t floats) {
    PartGradient mean = GradientOf(std::vector<float>(floats, 1));
    const auto count = static_cast<int64_t>(ids.size());
    mean.rows = GradientRows{std::move(ids), {count, 2}};
    return mean;
  };
  const auto keep = [&](const PartGradient& mean) {
    return mirror->state().updates().KeepMean(kTable, mean).status();
  };

  EXPECT_THAT(
      keep(GradientOf<float>({1, 2})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no rows")));
  EXPECT_THAT(
      keep(mean_of({6}, 2)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("row is 6")));
  EXPECT_THAT(keep(mean_of({1}, 3)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 rows and 12 bytes")));

  EXPECT_OK(keep(mean_of({1}, 2)));
}

}  // namespace
}  // namespace lockstep::server
