// The end of `lockstep run` with the real programs, and the result that it
// leaves.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Runs of one chief, one server and two workers on the job of a TrainingJob,
// whose own tasks are never started.
class RunEndTest : public ::testing::Test {
 protected:
  RunEndTest() {
    std::ofstream(directory_.Join("cluster.json"))
        << R"({"cluster": {"chief": ["127.0.0.1:0"], "ps": ["127.0.0.1:0"],
               "worker": ["127.0.0.1:0", "127.0.0.1:0"]}})";
  }

  std::unique_ptr<ChildProcess> Start(const std::vector<std::string>& settings,
                                      const std::string& out) {
    std::vector<std::string> args = {
        "run",   "--cluster",         directory_.Join("cluster.json"),
        "--job", job_->job_file(),    "--log_dir",
        logs(),  "--compute_threads", "1"};
    for (const std::string& setting : settings) {
      args.insert(args.end(), {"--set", setting});
    }
    auto run = ChildProcess::Start({.program = ProgramPath("lockstep"),
                                    .args = args,
                                    .log_path = directory_.Join(out)});
    EXPECT_THAT(run, IsOk());
    return run.ok() ? *std::move(run) : nullptr;
  }

  // Runs another sub-command to its end.
  int Command(const std::string& name, const std::string& out) {
    const auto exit = RunProgram({.program = ProgramPath("lockstep"),
                                  .args = {name, "--log_dir", logs()},
                                  .log_path = directory_.Join(out)},
                                 kPatience);
    EXPECT_THAT(exit, IsOk());
    return exit.ok() ? exit->code : -1;
  }

  static std::string LastLine(const std::string& text) {
    const std::vector<std::string> lines =
        absl::StrSplit(text, '\n', absl::SkipEmpty());
    return lines.empty() ? "" : lines.back();
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(directory_.Join(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string logs() const { return directory_.Join("logs"); }

  TempDir directory_;
  std::unique_ptr<TrainingJob> job_ = TrainingJob::Make({.set = {}});
};

TEST_F(RunEndTest, AGradientThatIsNoNumberFailsTheRunWithItsCause) {
  const auto run = Start({"learning_rate=1e30"}, "out");
  ASSERT_NE(run, nullptr);

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 1}));

  EXPECT_THAT(LastLine(run->ReadLog()),
              AllOf(StartsWith("failed: "), HasSubstr("the gradient of ")));
  EXPECT_EQ(Command("status", "status"), 5);
  EXPECT_THAT(Read("status"), StartsWith(LastLine(run->ReadLog())));
}

TEST_F(RunEndTest, AnOperatorsStopEndsTheRunWithThree) {
  const auto run = Start({"train_steps=10000000"}, "out");
  ASSERT_NE(run, nullptr);
  ASSERT_THAT(run->WaitForLog("training ", kPatience), IsOk());

  const auto second =
      Start({"train_steps=10000000", "seed=7",
             absl::StrCat("checkpoint.directory=", directory_.Join("others"))},
            "second");
  ASSERT_NE(second, nullptr);
  EXPECT_THAT(second->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 2}));
  EXPECT_THAT(second->ReadLog(), HasSubstr("a run that goes on"));
  EXPECT_EQ(Command("stop", "stop"), 0);

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 3}));
  EXPECT_THAT(LastLine(run->ReadLog()), StartsWith("stopped: "));
  EXPECT_EQ(Command("status", "status"), 6);
  EXPECT_EQ(Command("stop", "again"), 1);
}

TEST_F(RunEndTest, JobThatCannotRunIsRefusedBeforeAnyProcessStarts) {
  const auto run = Start({"total_num_replicas=3"}, "out");
  ASSERT_NE(run, nullptr);

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 2}));
  EXPECT_THAT(run->ReadLog(),
              HasSubstr("total_num_replicas is 3; the cluster has 2 workers"));
  EXPECT_FALSE(std::filesystem::exists(logs()));
}

}  // namespace
}  // namespace lockstep::testing
