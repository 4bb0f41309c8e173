#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/step_samples.h"
#include "tests/testing/child_process.h"
#include "tests/testing/process_cluster.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the program said, and how it ended.
struct Outcome {
  TaskExit exit;
  std::string text;
};

Outcome RunBenchmark(const std::vector<std::string>& args) {
  const lockstep::testing::TempDir directory;
  lockstep::testing::ChildProcess::Options options;
  options.program = lockstep::testing::ProgramPath("step_benchmark");
  options.args = args;
  options.log_path = directory.Join("log");
  absl::StatusOr<TaskExit> exit =
      lockstep::testing::RunProgram(options, absl::Seconds(100));
  EXPECT_THAT(exit.status(), IsOk());
  std::ifstream log(options.log_path);
  std::string text((std::istreambuf_iterator<char>(log)), {});
  return {exit.value_or(TaskExit{}), std::move(text)};
}

std::vector<nlohmann::json> JsonLines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
    if (value.is_object()) lines.push_back(std::move(value));
  }
  return lines;
}

TEST(StepBenchmarkTest, EveryCandidateIsReportedWithItsRatio) {
  const Outcome outcome =
      RunBenchmark({"--megabytes", "2", "--rounds", "1", "--warmup", "3",
                    "--steps", "3", "--scalar_steps", "5", "--bfloat16"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  const std::vector<nlohmann::json> lines = JsonLines(outcome.text);
  std::vector<std::string> names;
  for (const nlohmann::json& line : lines) {
    names.push_back(line.at("system").get<std::string>() + " " +
                    line.at("model").get<std::string>());
    EXPECT_GT(line.at("step_ms"), 0) << line;
    EXPECT_GT(line.at("ratio_to_tcp"), 0) << line;
    EXPECT_TRUE(line.contains("congestion_control")) << line;
  }
  EXPECT_THAT(names, ElementsAre("tcp dense", "lockstep dense",
                                 "lockstep_bfloat16 dense", "lockstep resnet50",
                                 "lockstep_bfloat16 resnet50", "tcp scalar",
                                 "lockstep scalar"));
}

TEST(StepBenchmarkTest, UnknownFlagIsRefused) {
  const Outcome outcome = RunBenchmark({"--megabyte", "2"});

  EXPECT_EQ(outcome.exit.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("--megabyte"));
}

TEST(BenchmarkModelTest, ResNet50Has161TensorsOfTheWantedSize) {
  auto variables = MakeBenchmarkVariables("resnet50", 100 << 20);

  ASSERT_THAT(variables.status(), IsOk());
  EXPECT_EQ(variables->size(), 161u);
  EXPECT_EQ(TotalBytes(*variables), 100 << 20);
}

TEST(BenchmarkModelTest, ResNet50KeepsItsOwnSizesAtItsOwnTotal) {
  auto variables = MakeBenchmarkVariables("resnet50", 25557032 * 4);

  ASSERT_THAT(variables.status(), IsOk());
  EXPECT_THAT(variables->front().shape, ElementsAre(7 * 7 * 3 * 64));
  EXPECT_THAT(variables->back().shape, ElementsAre(1000));
}

TEST(BenchmarkModelTest, SizesThatNoModelCanHaveAreRefused) {
  EXPECT_THAT(MakeBenchmarkVariables("resnet50", 160 * 4).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeBenchmarkVariables("dense", 6).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MakeBenchmarkVariables("vgg", 8).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(MomentumOracleTest, ElementThatMissedAStepIsFound) {
  MomentumOracle oracle(1);
  oracle.AdvanceTo(2);
  const float v1 = GradientOf(0);
  const float v2 = v1 * kMomentum + GradientOf(0);

  EXPECT_THAT(oracle.Check(-kLearningRate * (v1 + v2)), IsOk());
  EXPECT_THAT(oracle.Check(-kLearningRate * v1),
              StatusIs(absl::StatusCode::kInternal));
}

TEST(StepSamplesTest, MedianIsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(Median({3, 1, 9}), 3);
  EXPECT_EQ(Median({4, 1, 9, 2}), 3);
  EXPECT_EQ(Median({}), 0);
}

TEST(StepSamplesTest, TimesComeBackFromTheirFile) {
  const lockstep::testing::TempDir directory;
  const std::string path = directory.Join("samples");

  ASSERT_THAT(WriteSamples(path, {{50, 10, 1, 20, 2}, {70, 0, 0, 0, 0}}),
              IsOk());
  auto samples = ReadSamples(path);

  ASSERT_THAT(samples.status(), IsOk());
  EXPECT_EQ(samples->size(), 2u);
  EXPECT_EQ(samples->front().push, 20);
  EXPECT_DOUBLE_EQ(MedianMs(*samples, &StepSample::total), 60e-6);
}

TEST(StepSamplesTest, FileWithoutTimesIsRefused) {
  const lockstep::testing::TempDir directory;

  EXPECT_THAT(ReadSamples(directory.Join("none")).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace lockstep::benchmark
