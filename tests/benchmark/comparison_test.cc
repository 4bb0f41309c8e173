#include "tests/benchmark/comparison.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/benchmark/comparison_table.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ContainsRegex;

ComparisonOptions Options() {
  ComparisonOptions options;
  options.base.bytes = 100 << 20;
  options.base.warmup = 5;
  options.base.steps = 15;
  options.scalar_steps = 300;
  return options;
}

// A candidate whose rounds took these milliseconds per step.
Measured Rounds(const Candidate& candidate, const std::vector<int64_t>& ms) {
  Measured measured{candidate, candidate.bytes, 1, {}};
  for (const int64_t step : ms) {
    RunRecord record;
    record.samples.push_back({step * 1000000, 0, 0, 0, 0, 1});
    record.cpu_seconds = 0.25;
    record.server = {30 << 20, 20 << 20, 450 << 20, 520 << 20};
    measured.rounds.push_back(record);
  }
  return measured;
}

TEST(ComparisonTest, EveryNameHasRowsOfItsOwn) {
  for (const Comparison& comparison : AllComparisons()) {
    auto rows = MakeRows(comparison.name, Options());

    ASSERT_THAT(rows.status(), IsOk()) << comparison.name;
    EXPECT_FALSE(rows->empty()) << comparison.name;
    for (const Row& row : *rows) EXPECT_EQ(row.comparison, comparison.name);
  }
}

TEST(ComparisonTest, UnknownNameIsRefused) {
  EXPECT_THAT(MakeRows("udp", Options()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ComparisonTest, BothSidesOfAStepRatioMoveTheSameBytes) {
  for (const char* name : {"tcp1", "tcp2", "naive", "servers", "cpu", "tls",
                           "clipping", "observed"}) {
    const std::vector<Row> rows = MakeRows(name, Options()).value();
    for (const Row& row : rows) {
      ASSERT_TRUE(row.denominator.has_value()) << row.what;
      EXPECT_EQ(row.numerator.bytes, row.denominator->bytes) << row.what;
      EXPECT_EQ(row.numerator.workers, row.denominator->workers) << row.what;
    }
  }
}

TEST(ComparisonTest, GrowthOfWorkersKeepsTheBytesOfAStep) {
  const std::vector<Row> rows = MakeRows("growth_workers", Options()).value();

  ASSERT_EQ(rows.size(), 4u);
  for (const Row& row : rows) {
    EXPECT_EQ(row.numerator.bytes * row.numerator.workers, 200 << 20);
  }
}

TEST(ComparisonTableTest, RatioIsTheMedianOverRounds) {
  const Row row = MakeRows("tcp1", Options()).value().front();
  const std::vector<Measured> all = {Rounds(row.numerator, {20, 30, 60}),
                                     Rounds(*row.denominator, {10, 10, 10})};

  const RowResult result = Evaluate(row, all);

  EXPECT_DOUBLE_EQ(result.median, 3);
  EXPECT_DOUBLE_EQ(result.lowest, 2);
  EXPECT_DOUBLE_EQ(result.highest, 6);
  EXPECT_EQ(result.rounds, 3);
}

TEST(ComparisonTableTest, ServerMemoryLeavesItsStateOut) {
  const std::vector<Row> rows = MakeRows("memory", Options()).value();
  const std::vector<Measured> all = {Rounds(rows[0].numerator, {10})};

  EXPECT_DOUBLE_EQ(Evaluate(rows[0], all).median, 50);
  // Value and momentum of 100 MiB, both twice.
  EXPECT_DOUBLE_EQ(Evaluate(rows[1], all).median, 50);
  EXPECT_DOUBLE_EQ(Evaluate(rows[2], all).median, 120);
}

TEST(ComparisonTableTest, BytesAreThoseOfAStepAndAWorkerInModels) {
  std::vector<Row> rows = MakeRows("mirrored", Options()).value();
  std::erase_if(rows, [](const Row& row) {
    return row.metric != Metric::kModelsSent || row.numerator.workers != 4;
  });
  ASSERT_EQ(rows.size(), 1U);
  Measured measured = Rounds(rows[0].numerator, {10});
  // Two steps of four workers, of which each sends 1.5 times 100 MiB.
  measured.rounds[0].samples.push_back(measured.rounds[0].samples[0]);
  measured.rounds[0].sent_bytes = int64_t{2 * 4 * 150} << 20;

  EXPECT_DOUBLE_EQ(Evaluate(rows[0], {measured}).median, 1.5);
}

TEST(ComparisonTableTest, GoalsAreMetUpToTheirLimit) {
  EXPECT_TRUE(Met({2, false}, 2));
  EXPECT_FALSE(Met({2, false}, 2.1));
  EXPECT_TRUE(Met({5, true}, 5));
  EXPECT_FALSE(Met({5, true}, 4.9));
}

TEST(ComparisonTableTest, TableSaysWhatIsMetAndWhatIsMissing) {
  const std::vector<Row> rows = {MakeRows("tcp1", Options()).value().front(),
                                 MakeRows("backup", Options()).value().front()};
  const std::vector<Measured> all = {Rounds(rows[0].numerator, {11}),
                                     Rounds(*rows[0].denominator, {10})};

  const std::string table = ComparisonTable(rows, all);

  EXPECT_THAT(table,
              ContainsRegex("tcp1 .* 1\\.1 .*<= 1\\.15 +yes +11 / 10 ms"));
  EXPECT_THAT(table, ContainsRegex("backup .* - .*<= 1 +- "));
}

}  // namespace
}  // namespace lockstep::benchmark
