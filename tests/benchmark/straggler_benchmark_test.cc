#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/benchmark_outcome.h"
#include "tests/benchmark/pass_times.h"
#include "tests/benchmark/straggler_cases.h"
#include "tests/benchmark/straggler_simulation.h"
#include "tests/benchmark/tuned_gradients.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::benchmark {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

void ExpectFiveCases(const Outcome& outcome, const std::string& mode) {
  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  const std::vector<nlohmann::json> lines = JsonLines(outcome.text);
  EXPECT_EQ(lines.size(), 5u) << outcome.text;
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(line.at("mode"), mode) << line;
    EXPECT_GT(line.at("mean_ms"), 0) << line;
    EXPECT_GT(line.at("ratio_to_equal"), 0) << line;
  }
}

TEST(StragglerBenchmarkTest, StrictModeFinishesEveryCase) {
  const Outcome outcome = RunBenchmark(
      "straggler_benchmark", {"--rounds", "1", "--compute_ms", "5", "--steps",
                              "5", "--warmup", "2", "--bytes", "4096"});

  ExpectFiveCases(outcome, "strict");
}

TEST(StragglerBenchmarkTest, CompatibleModeFinishesEveryCase) {
  const Outcome outcome =
      RunBenchmark("straggler_benchmark",
                   {"--mode", "compatible", "--initial_tokens", "0", "--rounds",
                    "1", "--compute_ms", "5", "--steps", "5", "--warmup", "2"});

  ExpectFiveCases(outcome, "compatible");
}

TEST(StragglerCasesTest, SharedWorkIsMeasuredAgainstTheSumOfSpeeds) {
  StragglerOptions options;
  options.shared = true;
  const std::vector<StragglerCase> cases = StragglerCases(options);
  std::vector<Measured> measured;
  for (const StragglerCase& straggler : cases) {
    EXPECT_EQ(straggler.candidate.numbers, 16) << straggler.what;
    EXPECT_EQ(straggler.candidate.compute_ms, 25) << straggler.what;
    RunRecord record;
    record.samples.push_back({110 * 1000000, 0, 0, 0, 0, 1});
    measured.push_back({straggler.candidate, 4, 1, {record}});
  }

  const std::string table = StragglerTable(cases, measured);

  EXPECT_THAT(table, HasSubstr("ideal ratio"));
  EXPECT_THAT(table, ContainsRegex("4 equal .* 1\\.10 .*<= 1\\.05 +NO"));
  EXPECT_THAT(table, ContainsRegex("4x slower .* 1\\.10 .*<= 1\\.35 +yes"));
  EXPECT_EQ(cases[2].candidate.slow_workers, 4);
}

// Four workers, of which the chief counts three: a step that takes as long has
// a quarter less.
TEST(StragglerCasesTest, TunedJobsAreComparedByTheTimeOfAGradient) {
  StragglerOptions options;
  options.tuned = true;
  const std::vector<StragglerCase> cases = StragglerCases(options);
  std::vector<Measured> measured;
  for (const StragglerCase& straggler : cases) {
    RunRecord record;
    record.samples.push_back({51 * 1000000, 0, 0, 0, 0, 1});
    record.gradients = straggler.candidate.tuned ? 3 : 0;
    measured.push_back({straggler.candidate, 4, 1, {record}});
  }

  const std::string table = StragglerTable(cases, measured);

  EXPECT_THAT(table, HasSubstr("ideal ratio"));
  EXPECT_THAT(table, ContainsRegex("none a backup .* 1\\.00 .*<= 53 ms +yes"));
  EXPECT_THAT(table, ContainsRegex("4x slower .* 1\\.33 .*<= 1\\.4 +yes"));
  EXPECT_THAT(table, ContainsRegex("killed .* 1\\.33 .*<= 1\\.2 +NO"));
  EXPECT_THAT(table, ContainsRegex("2 backups .* 2\\.00"));
  EXPECT_THAT(table, ContainsRegex("best of these .* 1\\.33 .*<= 1\\.03 +NO"));
}

TEST(TunedGradientsTest, MeanIsOfTheMeasuredSteps) {
  const std::vector<TunedBackups> changes = ChangesInLog(
      "2026 info chief 0: training starts\n"
      "2026 warning chief 0: AUTO: after step 20, 2 backups instead of 0: a "
      "pass takes 5 ms\n"
      "2026 warning chief 0: AUTO: after step 150, 1 backup instead of 2: a\n"
      "AUTO: after step");
  EXPECT_EQ(changes, (std::vector<TunedBackups>{{20, 2}, {150, 1}}));
  EXPECT_EQ(MeanGradients({}, 4, 100, 200), 4);
  EXPECT_EQ(MeanGradients(changes, 4, 100, 200), 2.5);
  EXPECT_EQ(MeanGradients(changes, 4, 0, 20), 4);
  EXPECT_EQ(MeanGradients(changes, 4, 200, 300), 3);
}

TEST(PassTimesTest, LognormalTimesHaveTheMeanAndTheShape) {
  RoleOptions role;
  role.compute_ms = 20;
  role.sigma = 0.5;
  PassTimes times(role, 3);
  PassTimes again(role, 3);
  constexpr int kPasses = 20000;
  double sum = 0;
  double logs = 0;
  double squares = 0;
  for (int i = 0; i < kPasses; ++i) {
    const double ms = absl::ToDoubleMilliseconds(times.Next());
    EXPECT_EQ(ms, absl::ToDoubleMilliseconds(again.Next()));
    sum += ms;
    logs += std::log(ms);
    squares += std::log(ms) * std::log(ms);
  }
  const double mean = logs / kPasses;
  EXPECT_NEAR(sum / kPasses, 20, 0.4);
  EXPECT_NEAR(std::sqrt(squares / kPasses - mean * mean), 0.5, 0.02);
}

TEST(PassTimesTest, WorkersFromTheFirstSlowOneAreSlowAndOneHangs) {
  RoleOptions role;
  role.compute_ms = 10;
  role.slow_worker = 2;
  role.slow_factor = 3;
  role.hang_worker = 3;
  role.hang_ms = 100;
  role.hang_every_ms = 1000;
  EXPECT_EQ(PassTimes(role, 1).Next(), absl::Milliseconds(10));
  EXPECT_EQ(PassTimes(role, 2).Next(), absl::Milliseconds(30));
  const absl::Time start = absl::FromUnixSeconds(9);
  EXPECT_EQ(PassTimes(role, 2).Hang(start), absl::ZeroDuration());
  PassTimes hangs(role, 3);
  EXPECT_EQ(hangs.Next(), absl::Milliseconds(30));
  EXPECT_EQ(hangs.Hang(start), absl::ZeroDuration());
  EXPECT_EQ(hangs.Hang(start + absl::Milliseconds(999)), absl::ZeroDuration());
  EXPECT_EQ(hangs.Hang(start + absl::Seconds(1)), absl::Milliseconds(100));
  EXPECT_EQ(hangs.Hang(start + absl::Seconds(2)), absl::ZeroDuration());
}

// The ideal ratios of the table, and the costs on top.
TEST(StragglerSimulationTest, SharedCasesTakeTheTimeOfTheSumOfSpeeds) {
  StragglerOptions options;
  options.shared = true;
  const std::vector<StragglerCase> cases = StragglerCases(options);
  const double least[] = {100, 123, 100, 100, 100, 100};
  ASSERT_EQ(cases.size(), 6u);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto ms = SimulatedMs(cases[i], {});
    ASSERT_THAT(ms, testing::IsOk());
    ASSERT_TRUE(ms->has_value());
    EXPECT_GE(**ms, least[i] * 0.99) << cases[i].what;
    EXPECT_LE(**ms, least[i] * 1.15) << cases[i].what;
  }
  // Four micro-batches of each worker.
  const auto dearer =
      SimulatedMs(cases[0], {absl::Milliseconds(3), absl::Milliseconds(2)});
  ASSERT_THAT(dearer, testing::IsOk());
  EXPECT_NEAR(dearer->value_or(0), 100 + 4 * 2 + 3, 0.5);
}

TEST(StragglerSimulationTest, FourGradientsAreComparedWhereTheirNumberChanges) {
  StragglerOptions options;
  options.tuned = true;
  const std::vector<StragglerCase> cases = StragglerCases(options);
  const auto equal = SimulatedMs(cases[1], {});
  const auto slow = SimulatedMs(cases[2], {});
  ASSERT_THAT(equal, testing::IsOk());
  ASSERT_THAT(slow, testing::IsOk());
  EXPECT_NEAR(equal->value_or(0), 50, 1);
  EXPECT_NEAR(slow->value_or(0), 50 * 4 / 3.0, 3);
}

TEST(StragglerSimulationTest,
     TableHasTheDifferenceAndLeavesOutWhatIsNotSimulated) {
  const std::vector<StragglerCase> cases = StragglerCases({});
  std::vector<Measured> measured;
  std::vector<std::optional<double>> simulated;
  for (const StragglerCase& straggler : cases) {
    RunRecord record;
    record.samples.push_back({50 * 1000000, 0, 0, 0, 0, 1});
    measured.push_back({straggler.candidate, 4, 1, {record}});
    const auto ms = SimulatedMs(straggler, {absl::Milliseconds(5), {}});
    ASSERT_THAT(ms, testing::IsOk());
    simulated.push_back(*ms);
  }

  const std::string table = AgreementTable(cases, measured, simulated);

  EXPECT_THAT(table, ContainsRegex("4 equal .* 50\\.0 +55\\.0 +\\+10\\.0 %"));
  EXPECT_THAT(table, ContainsRegex("dead from the start +50\\.0 +- +-"));
}

TEST(StragglerBenchmarkTest, UnknownModeIsRefused) {
  const Outcome outcome =
      RunBenchmark("straggler_benchmark", {"--mode", "asynchronous"});

  EXPECT_EQ(outcome.exit.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("compatible"));
}

TEST(StragglerCasesTest, LastWorkerAloneIsSlowOrAbsent) {
  const std::vector<StragglerCase> cases = StragglerCases({});

  ASSERT_EQ(cases.size(), 5u);
  EXPECT_EQ(cases[0].candidate.workers, 4);
  EXPECT_EQ(cases[2].candidate.slow_factor, 4);
  EXPECT_EQ(cases[3].candidate.slow_factor, 10);
  EXPECT_TRUE(cases[4].candidate.last_absent);
  for (const StragglerCase& straggler : cases) {
    EXPECT_EQ(straggler.candidate.aggregate, 4) << straggler.what;
  }
}

TEST(StragglerCasesTest, RatioIsToTheFirstCase) {
  const std::vector<StragglerCase> cases = StragglerCases({});
  std::vector<Measured> measured;
  for (size_t i = 0; i < cases.size(); ++i) {
    RunRecord record;
    const auto ms = static_cast<int64_t>(50 + 10 * i);
    record.samples.push_back({ms * 1000000, 0, 0, 0, 0, 1});
    measured.push_back({cases[i].candidate, 4, 1, {record}});
  }

  const std::string table = StragglerTable(cases, measured);

  EXPECT_THAT(table, ContainsRegex("4 equal .* 50\\.0 .*<= 53 ms +yes"));
  EXPECT_THAT(table, ContainsRegex("dead .* 1\\.80 .*<= 1\\.05 +NO"));
}

TEST(StragglerCasesTest, GoalsAreOfStrictModeAlone) {
  StragglerOptions options;
  options.compatible = true;

  for (const StragglerCase& straggler : StragglerCases(options)) {
    EXPECT_EQ(straggler.goal, 0) << straggler.what;
  }
}

}  // namespace
}  // namespace lockstep::benchmark
