#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/benchmark_outcome.h"
#include "tests/benchmark/recovery_table.h"

namespace lockstep::benchmark {
namespace {

using ::testing::ContainsRegex;

TEST(RecoveryBenchmarkTest, EveryRoleIsKilledAndReported) {
  const Outcome outcome =
      RunBenchmark("recovery_benchmark", {"--megabytes", "1", "--rounds", "1"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  std::vector<std::string> killed;
  for (const nlohmann::json& line : JsonLines(outcome.text)) {
    killed.push_back(line.at("killed"));
    EXPECT_GT(line.at("median_ms"), 0) << line;
  }
  EXPECT_THAT(killed, ::testing::ElementsAre("worker", "ps", "chief",
                                             "ps without state"));
}

Recovery Took(int milliseconds, int read = 0) {
  return {absl::Milliseconds(100), absl::Milliseconds(100 + milliseconds),
          absl::Milliseconds(read)};
}

TEST(RecoveryTableTest, TimeCountsFromBeingUp) {
  const RecoveryRow row = {1, Victim::kChief, {Took(300), Took(100)}};

  EXPECT_DOUBLE_EQ(RecoveryMs(row), 200);
  EXPECT_DOUBLE_EQ(RecoveryGoalMs(row), 2000);
}

TEST(RecoveryTableTest, ServerWithoutStateMayReadItsCheckpointThreeTimes) {
  const std::vector<RecoveryRow> rows = {
      {1, Victim::kServerWithoutState, {Took(2100, 100)}},
      {100, Victim::kServerWithoutState, {Took(2900, 1000)}}};

  EXPECT_DOUBLE_EQ(RecoveryGoalMs(rows[0]), 2000);
  EXPECT_DOUBLE_EQ(RecoveryGoalMs(rows[1]), 3000);
  EXPECT_THAT(RecoveryTable(rows), ContainsRegex("state +1 .* 2000  NO"));
  EXPECT_THAT(RecoveryTable(rows), ContainsRegex("state +100 .* 3000  yes"));
}

}  // namespace
}  // namespace lockstep::benchmark
