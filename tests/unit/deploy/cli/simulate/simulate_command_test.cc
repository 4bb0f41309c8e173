#include "deploy/cli/simulate/simulate_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/deploy/cli/config/command_fixture.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SimulateCommandTest : public testing::CommandTest {
 protected:
  int Simulate(std::vector<std::string> args) {
    return Run<SimulateCommand>("simulate", std::move(args));
  }
};

TEST_F(SimulateCommandTest, ComparesNumbersOfBackupsAndAuto) {
  EXPECT_EQ(Simulate({"--workers", "4", "--pass_time", "constant(50ms)",
                      "--slow", "1x4", "--steps", "50"}),
            0);
  EXPECT_THAT(Out(), AllOf(HasSubstr("backups"), HasSubstr("201.0 ms"),
                           HasSubstr("51.00 ms"), HasSubstr("AUTO at ")));
}

TEST_F(SimulateCommandTest, JsonIsOneLine) {
  EXPECT_EQ(Simulate({"--workers", "3", "--pass_time", "constant(50ms)",
                      "--steps", "10", "--most_backups", "1", "--json"}),
            0);
  const nlohmann::json json = nlohmann::json::parse(Out());
  EXPECT_EQ(json["workers"], 3);
  ASSERT_EQ(json["policies"].size(), 4u);
  EXPECT_EQ(json["policies"][3]["backups"], "SHARED");
}

TEST_F(SimulateCommandTest, LongWorkTellsItsProgress) {
  EXPECT_EQ(Simulate({"--workers", "4", "--pass_time", "constant(50ms)",
                      "--steps", "20"}),
            0);
  EXPECT_EQ(Err(), "");
  EXPECT_EQ(Simulate({"--workers", "10", "--pass_time", "constant(50ms)",
                      "--steps", "2499", "--warmup", "1", "--most_backups", "0",
                      "--micro_batches", "10"}),
            0);
  EXPECT_THAT(Err(), AllOf(HasSubstr("simulates 0, policy 1 of 3"),
                           HasSubstr("simulates AUTO, policy 2 of 3")));
}

TEST_F(SimulateCommandTest, TraceGivesWorkersAndTimes) {
  const std::string trace = Write("trace", R"({"pass_seconds": [[1], [2]]})");
  EXPECT_EQ(Simulate({"--trace", trace, "--steps", "10", "--overhead", "0",
                      "--json"}),
            0);
  const nlohmann::json json = nlohmann::json::parse(Out());
  EXPECT_EQ(json["workers"], 2);
  EXPECT_NEAR(json["policies"][0]["step_seconds"], 2, 1e-9);
  EXPECT_NEAR(json["policies"][1]["step_seconds"], 1, 1e-9);
}

TEST_F(SimulateCommandTest, JobFileGivesWorkers) {
  const std::string job =
      Write("job",
            "train_steps: 5 total_num_replicas: 3 replicas_to_aggregate: AUTO "
            "model { kind: \"external\" }");
  EXPECT_EQ(Simulate({"--job", job, "--pass_time", "constant(1s)", "--steps",
                      "5", "--json"}),
            0);
  EXPECT_EQ(nlohmann::json::parse(Out())["workers"], 3);
}

TEST_F(SimulateCommandTest, JobThatSplitsItsBatchesIsCompared) {
  const std::string job =
      Write("job",
            "train_steps: 5 batch_size: 32 micro_batches: 4 "
            "data { train_images: \"images\" train_labels: \"labels\" }");
  EXPECT_EQ(Simulate({"--job", job, "--workers", "3", "--pass_time",
                      "constant(1s)", "--steps", "5", "--json"}),
            0);
  const nlohmann::json json = nlohmann::json::parse(Out());
  std::vector<std::string> names;
  for (const nlohmann::json& policy : json["policies"]) {
    names.push_back(policy["backups"]);
  }
  EXPECT_THAT(names, ElementsAre("0", "1", "2", "AUTO", "SHARED"));
}

TEST_F(SimulateCommandTest, WrongFlagsAreRefusedWithTheFix) {
  const auto error = [this](std::vector<std::string> args) {
    EXPECT_EQ(Simulate(std::move(args)), 2);
    return Err();
  };
  EXPECT_THAT(error({"--workers", "4"}), HasSubstr("--pass_time"));
  EXPECT_THAT(error({"--pass_time", "constant(1s)"}), HasSubstr("--workers"));
  EXPECT_THAT(
      error({"--workers", "4", "--pass_time", "constant(1s)", "--slow", "5x2"}),
      HasSubstr("--slow 5x2: there are 4 workers"));
  EXPECT_THAT(error({"--workers", "4", "--pass_time", "constant(1s)",
                     "--overhead", "soon"}),
              HasSubstr("--overhead is soon"));
  EXPECT_THAT(error({"--workers", "4", "--pass_time", "constant(1s)",
                     "--overhead", "1000000s"}),
              HasSubstr("--overhead is 1000000s, but must be a duration such "
                        "as 10ms, from 0 to 10m, the job's max_wait"));
  EXPECT_THAT(error({"--workers", "4", "--pass_time", "constant(1s)", "--die",
                     "1000000/1ns", "--restart", "0s"}),
              HasSubstr("1000/s"));
  EXPECT_THAT(error({"--workers", "4", "--pass_time", "constant(1s)", "--set",
                     "mode=COMPATIBLE"}),
              HasSubstr("mode is COMPATIBLE"));
  EXPECT_THAT(error({"--workers", "4", "--pass_time", "constant(1s)", "--set",
                     "strategy.kind=MULTI_WORKER_MIRRORED"}),
              HasSubstr("strategy.kind"));
}

TEST_F(SimulateCommandTest, NegativeSeedIsRefused) {
  const std::vector<std::string> args = {
      "--workers", "2", "--pass_time", "constant(1s)", "--steps", "10"};
  std::vector<std::string> negative = args;
  negative.push_back("--seed=-1");
  EXPECT_THROW(Simulate(std::move(negative)), CLI::ValidationError);
  EXPECT_EQ(Simulate(args), 0) << Err();
}

TEST_F(SimulateCommandTest, WorkersThatDieTooOftenAreAnError) {
  EXPECT_EQ(Simulate({"--workers", "3", "--pass_time", "constant(50s)", "--die",
                      "60/m"}),
            1);
  EXPECT_THAT(Err(), HasSubstr("max_wait"));
}

}  // namespace
}  // namespace lockstep::cli
