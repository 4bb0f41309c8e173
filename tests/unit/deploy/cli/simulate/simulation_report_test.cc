#include "deploy/cli/simulate/simulation_report.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

SimulatedRun RunOf(double seconds, int64_t gradients) {
  SimulatedRun run;
  run.time = absl::Seconds(seconds);
  run.steps = 10;
  run.gradients = gradients;
  run.computed = absl::Seconds(8);
  run.wasted = absl::Seconds(2);
  return run;
}

Simulation Example() {
  return {
      4,
      80,
      {{"0", RunOf(1, 40)}, {"1", RunOf(0.6, 30)}, {"AUTO", RunOf(0.6, 30)}},
      {"2.3 s, step 20: 1 backup instead of 0: a long reason that does not "
       "fit into a narrow window"}};
}

TEST(SimulationReportTest, TableHasTimesEfficiencyAndWaste) {
  const std::string text = SimulationText(Example(), 100);
  EXPECT_THAT(text,
              ContainsRegex("0 +100.0 ms +25.00 ms +\\+0.0 % +50.0 % +25"));
  EXPECT_THAT(text,
              ContainsRegex("1 +60.00 ms +20.00 ms +-20.0 % +62.5 % +25"));
}

TEST(SimulationReportTest, PlotMarksTheBest) {
  EXPECT_THAT(SimulationText(Example(), 60),
              ContainsRegex("1 \\|#+ 20.00 ms best"));
  EXPECT_EQ(Example().Best(), 1u);
}

TEST(SimulationReportTest, SixtyColumnsAreEnough) {
  const std::string text = SimulationText(Example(), 60);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(line.size(), 60u) << line;
  }
  EXPECT_THAT(text, HasSubstr("wasted"));
  EXPECT_THAT(text, HasSubstr("25.0 %"));
}

TEST(SimulationReportTest, ReasonsAreWrappedAndTheFirstChangesSay) {
  Simulation simulation = Example();
  EXPECT_THAT(SimulationText(simulation, 60),
              HasSubstr("AUTO at 2.3 s, step 20: 1 backup instead of 0: a long "
                        "reason\n  that does not fit into a narrow window\n"));
  simulation.changes.assign(9, "1 s: another");
  EXPECT_THAT(SimulationText(simulation, 60),
              HasSubstr("another\nand 3 more changes, which --json has\n"));
  EXPECT_EQ(
      nlohmann::json::parse(SimulationJson(simulation))["auto_changes"].size(),
      9u);
}

TEST(SimulationReportTest, JsonHasTheSame) {
  const nlohmann::json json = nlohmann::json::parse(SimulationJson(Example()));
  EXPECT_EQ(json["workers"], 4);
  ASSERT_EQ(json["policies"].size(), 3u);
  EXPECT_EQ(json["policies"][1]["backups"], "1");
  EXPECT_DOUBLE_EQ(json["policies"][1]["gradient_seconds"], 0.02);
  EXPECT_DOUBLE_EQ(json["policies"][1]["efficiency"], 0.625);
  EXPECT_DOUBLE_EQ(json["policies"][1]["wasted"], 0.25);
  EXPECT_EQ(json["auto_changes"].size(), 1u);
}

}  // namespace
}  // namespace lockstep::cli
