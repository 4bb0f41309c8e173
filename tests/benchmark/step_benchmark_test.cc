#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/benchmark_outcome.h"
#include "tests/benchmark/resource_usage.h"
#include "tests/benchmark/step_samples.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::benchmark {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::vector<std::string> Names(const std::vector<nlohmann::json>& lines) {
  std::vector<std::string> names;
  for (const nlohmann::json& line : lines) {
    names.push_back(absl::StrCat(line.at("system").get<std::string>(), " ",
                                 line.at("model").get<std::string>(), " ",
                                 line.at("workers").get<int>()));
  }
  return names;
}

TEST(StepBenchmarkTest, EveryCandidateIsReported) {
  const Outcome outcome = RunBenchmark(
      "step_benchmark", {"--megabytes", "2", "--rounds", "1", "--warmup", "3",
                         "--steps", "3", "--scalar_steps", "5"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  const std::vector<nlohmann::json> lines = JsonLines(outcome.text);
  for (const nlohmann::json& line : lines) {
    EXPECT_GT(line.at("step_ms"), 0) << line;
    EXPECT_GT(line.at("server_mib"), 0) << line;
    EXPECT_TRUE(line.contains("congestion_control")) << line;
  }
  EXPECT_THAT(
      Names(lines),
      IsSupersetOf({"tcp dense 1", "lockstep dense 1", "tcp_two_phase dense 1",
                    "tcp dense 2", "lockstep dense 2", "tcp_two_phase dense 2",
                    "lockstep dense 3", "lockstep dense 3", "naive dense 2",
                    "naive_tuned dense 2", "lockstep resnet50 2",
                    "tcp scalar 2", "lockstep scalar 2", "stream scalar 2"}));
}

TEST(StepBenchmarkTest, TableHasEveryRowOfTheComparisonsNamed) {
  const Outcome outcome =
      RunBenchmark("step_benchmark", {"--compare", "tcp1,scalar", "--megabytes",
                                      "1", "--rounds", "2", "--warmup", "1",
                                      "--steps", "3", "--scalar_steps", "5"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  EXPECT_THAT(outcome.text, ContainsRegex("tcp1 .*<= 1.15 +(yes|NO)"));
  EXPECT_THAT(outcome.text, ContainsRegex("scalar .*<= 0.2 +(yes|NO)"));
  for (const nlohmann::json& line : JsonLines(outcome.text)) {
    EXPECT_GT(line.at("ratio_to_tcp"), 0) << line;
    EXPECT_EQ(line.at("round_ms").size(), 2u) << line;
  }
}

TEST(StepBenchmarkTest, GrowthHasItsWorkersAndSizes) {
  const Outcome outcome = RunBenchmark(
      "step_benchmark", {"--compare", "growth", "--megabytes", "0.5",
                         "--rounds", "1", "--warmup", "1", "--steps", "3"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  EXPECT_THAT(
      Names(JsonLines(outcome.text)),
      IsSupersetOf({"lockstep dense 1", "lockstep dense 2", "lockstep dense 4",
                    "lockstep dense 8", "tcp dense 8"}));
  EXPECT_THAT(outcome.text, HasSubstr("2 workers of 5 MiB"));
}

// Loopback is that of other tests, too, so there may be more bytes. There may
// be a few less: other workers may be ahead at the first step and behind at the
// last.
TEST(StepBenchmarkTest, MirrorsSendWhatTheFormulaSays) {
  const Outcome outcome =
      RunBenchmark("step_benchmark", {"--compare", "mirrored", "--megabytes",
                                      "4", "--rounds", "1", "--warmup", "2",
                                      "--steps", "4", "--scalar_steps", "20"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  for (const auto& [workers, models] :
       {std::pair{"2", "1"}, {"4", "1.5"}, {"8", "1.75"}}) {
    EXPECT_THAT(outcome.text,
                ContainsRegex(absl::StrCat("models sent by each of ", workers,
                                           " workers; 2\\(n-1\\)/n is ", models,
                                           " +[0-9.]+ .*(yes|NO)")));
  }
  for (const nlohmann::json& line : JsonLines(outcome.text)) {
    if (!line.contains("job") || line.at("model") != "dense") continue;
    if (line.at("workers") == 2) continue;  // also those that share memory
    const double workers = line.at("workers");
    EXPECT_GE(line.at("models_sent"), 0.8 * 2 * (workers - 1) / workers)
        << line;
  }
}

TEST(StepBenchmarkTest, UnknownFlagsAndNamesAreRefused) {
  const Outcome flag = RunBenchmark("step_benchmark", {"--megabyte", "2"});
  const Outcome name = RunBenchmark("step_benchmark", {"--compare", "udp"});

  EXPECT_EQ(flag.exit.code, 2) << flag.text;
  EXPECT_THAT(flag.text, HasSubstr("--megabyte"));
  EXPECT_EQ(name.exit.code, 2) << name.text;
  EXPECT_THAT(name.text, HasSubstr("\"udp\""));
}

TEST(KernelBenchmarkTest, EveryKernelIsComparedWithCopyAdd) {
  const Outcome outcome = RunBenchmark(
      "kernel_benchmark", {"--megabytes", "1", "--benchmark_repetitions=1",
                           "--benchmark_min_time=0.001"});

  ASSERT_TRUE(outcome.exit.ok()) << outcome.text;
  for (const char* kernel : {"momentum/gradients:1", "momentum/gradients:2",
                             "adam/gradients:1", "adam/gradients:2"}) {
    EXPECT_THAT(outcome.text,
                ContainsRegex(absl::StrCat(kernel, " .*>= 0.9 +(yes|NO)")));
  }
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

TEST(StepSamplesTest, MillisecondsAreOfAGlobalStep) {
  // One step of 2 ms, then three in 9 ms.
  const std::vector<StepSample> samples = {{2000000, 0, 0, 0, 0, 1},
                                           {9000000, 0, 0, 0, 0, 3}};

  EXPECT_EQ(CountSteps(samples), 4);
  EXPECT_DOUBLE_EQ(MedianMs(samples, &StepSample::total), 3);
  EXPECT_DOUBLE_EQ(MeanMs(samples, &StepSample::total), 11.0 / 4);
}

TEST(StepSamplesTest, RecordComesBackFromItsFile) {
  const lockstep::testing::TempDir directory;
  const std::string path = directory.Join("record");
  const RunRecord record{
      {{50, 10, 1, 20, 2, 1}, {70, 0, 0, 0, 0, 2}}, 1.5, {10, 20, 30, 70}, 900};

  ASSERT_THAT(WriteRecord(path, record), IsOk());
  auto read = ReadRecord(path);

  ASSERT_THAT(read.status(), IsOk());
  EXPECT_EQ(read->cpu_seconds, 1.5);
  EXPECT_EQ(read->server.resident(), 60);
  EXPECT_EQ(read->server.peak, 70);
  EXPECT_EQ(read->sent_bytes, 900);
  ASSERT_EQ(read->samples.size(), 2u);
  EXPECT_EQ(read->samples.front().push, 20);
  EXPECT_EQ(read->samples.back().steps, 2);
}

TEST(StepSamplesTest, FileWithoutTimesIsRefused) {
  const lockstep::testing::TempDir directory;
  std::ofstream(directory.Join("no_steps")) << "0 0 0 0 0 0\n1 1 1 1 1 0\n";

  EXPECT_THAT(ReadRecord(directory.Join("none")).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(ReadRecord(directory.Join("no_steps")).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RunRecorderTest, OnlyTheWantedStepsAreKept) {
  RunRecorder recorder(2, 3);

  for (int64_t i = 1; i <= 8; ++i) recorder.Add({i, 0, 0, 0, 0, 1});

  const RunRecord record = recorder.Finish();
  ASSERT_EQ(record.samples.size(), 3u);
  EXPECT_EQ(record.samples.front().total, 3);
  EXPECT_GE(record.cpu_seconds, 0);
}

TEST(ResourceUsageTest, MemoryIsReadByKind) {
  const ProcessMemory memory = ParseMemory(
      "Name:\tps_server\nVmHWM:\t  70 kB\nRssAnon:\t 10 kB\n"
      "RssFile:\t 20 kB\nRssShmem:\t 30 kB\nThreads:\t5\n");

  EXPECT_EQ(memory.anonymous, 10 << 10);
  EXPECT_EQ(memory.resident(), 60 << 10);
  EXPECT_EQ(memory.peak, 70 << 10);
}

// Runs a process that uses a fifth of a second, and whose parent has no other
// child; returns the CPU time that it measures for all siblings.
double SecondsOfAnOnlyChild() {
  const std::clock_t until = CLOCKS_PER_SEC / 5;
  while (std::clock() < until) {
  }
  return UsageOfSiblings().cpu_seconds;
}

TEST(ResourceUsageDeathTest, OwnProcessIsAmongItsSiblingsOnce) {
  EXPECT_EXIT(
      {
        const double seconds = SecondsOfAnOnlyChild();
        _exit(seconds > 0.15 && seconds < 0.35 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(ResourceUsageTest, SentBytesAreThoseOfTheLoopbackDevice) {
  const std::string head =
      "Inter-|   Receive          |  Transmit\n"
      " face |bytes packets errs drop fifo frame compressed multicast|bytes\n";

  EXPECT_EQ(
      ParseSentBytes(head + "  eth0: 1 1 0 0 0 0 0 0 2 2 0 0 0 0 0 0\n"
                            "    lo:70 1 0 0 0 0 0 0 900 2 0 0 0 0 0 0\n"),
      900);
  EXPECT_EQ(ParseSentBytes(head), 0);
  EXPECT_EQ(ParseSentBytes("lo: 1 2\n"), 0);
}

TEST(ResourceUsageTest, SilentStatusIsNoMemory) {
  EXPECT_EQ(ParseMemory("").peak, 0);
  EXPECT_EQ(ParseMemory("RssAnon: much\nVmHWM\n").resident(), 0);
}

}  // namespace
}  // namespace lockstep::benchmark
