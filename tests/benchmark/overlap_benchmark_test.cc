#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/overlap_schedule.h"
#include "tests/testing/child_process.h"
#include "tests/testing/process_cluster.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::IsOk;

OverlapOptions Small() {
  OverlapOptions options;
  options.layers = 2;
  options.forward_share = 0;
  options.balances = {1, 3};
  options.block = 3;
  options.rounds = 2;
  return options;
}

TEST(OverlapScheduleTest, RoundIsTransferThenBothWaysOfEachBalance) {
  const OverlapOptions options = Small();

  EXPECT_EQ(TotalSteps(options), 30);
  EXPECT_EQ(StepAt(options, 2).phase, OverlapPhase::kTransfer);
  EXPECT_EQ(StepAt(options, 3).phase, OverlapPhase::kSerial);
  EXPECT_EQ(StepAt(options, 8).phase, OverlapPhase::kOverlapped);
  EXPECT_EQ(StepAt(options, 8).balance, 0u);
  EXPECT_EQ(StepAt(options, 9).balance, 1u);
  EXPECT_EQ(StepAt(options, 14).round, 0);
  EXPECT_EQ(StepAt(options, 15).round, 1);
  EXPECT_EQ(StepAt(options, 15).phase, OverlapPhase::kTransfer);
}

TEST(OverlapScheduleTest, ShortestStepHasOneLayerOfEachThatNothingHides) {
  OverlapOptions options = Small();

  EXPECT_DOUBLE_EQ(ShortestStep(options, 10, 2), 11);
  EXPECT_DOUBLE_EQ(ShortestStep(options, 2, 10), 11);
  options.layers = 1;
  EXPECT_DOUBLE_EQ(ShortestStep(options, 2, 10), 12);
}

TEST(OverlapScheduleTest, ReportComparesWithTheSlowerOfBoth) {
  const OverlapOptions options = Small();
  std::vector<OverlapSample> samples;
  for (int64_t i = 0; i < TotalSteps(options); ++i) {
    if (i % options.block < 2) {
      samples.push_back({1000, 1000});  // does not count
      continue;
    }
    const OverlapStep step = StepAt(options, i);
    const double compute = 10 * options.balances[step.balance];
    if (step.phase == OverlapPhase::kTransfer) samples.push_back({10, 0});
    if (step.phase == OverlapPhase::kSerial) {
      samples.push_back({10 + compute, compute});
    }
    if (step.phase == OverlapPhase::kOverlapped) {
      samples.push_back({compute + 6, compute + 1});
    }
  }

  const std::string report = OverlapReport(options, samples);

  const size_t end = report.find('\n');
  const auto even = nlohmann::json::parse(report.substr(0, end));
  const auto heavy = nlohmann::json::parse(report.substr(end + 1));
  EXPECT_DOUBLE_EQ(even.at("ratio"), 1.6);
  EXPECT_DOUBLE_EQ(even.at("serial_ratio"), 2);
  EXPECT_DOUBLE_EQ(even.at("shortest_ratio"), 1.5);
  EXPECT_DOUBLE_EQ(heavy.at("ratio"), 1.2);
  EXPECT_DOUBLE_EQ(heavy.at("fastest_ratio"), 1.2);
  EXPECT_DOUBLE_EQ(heavy.at("compute_ms"), 30);
  EXPECT_DOUBLE_EQ(heavy.at("transfer_ms"), 10);
  EXPECT_EQ(OverlapTable(report),
            "compute : transfer   ratio  [range]            least  serial     "
            "goal   met\n"
            "1                     1.60  [1.60, 1.60]        1.50    2.00  "
            "<= 1.15    NO\n"
            "3                     1.20  [1.20, 1.20]        1.17    1.33\n");
}

TEST(OverlapBenchmarkTest, EveryBalanceIsReported) {
  const lockstep::testing::TempDir directory;
  lockstep::testing::ChildProcess::Options options;
  options.program = lockstep::testing::ProgramPath("overlap_benchmark");
  options.args = {"--megabytes", "1", "--layers", "4", "--balances", "1,2",
                  "--block",     "4", "--rounds", "1"};
  options.log_path = directory.Join("log");

  const absl::StatusOr<cli::TaskExit> exit =
      lockstep::testing::RunProgram(options, absl::Seconds(100));

  ASSERT_THAT(exit.status(), IsOk());
  std::ifstream log(options.log_path);
  std::vector<double> balances;
  for (std::string line; std::getline(log, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    balances.push_back(json.at("compute_over_transfer"));
    EXPECT_GT(json.at("ratio"), 0) << line;
  }
  EXPECT_TRUE(exit->ok());
  EXPECT_THAT(balances, ::testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace lockstep::benchmark
