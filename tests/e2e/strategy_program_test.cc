// A program of a user that trains with a strategy on several workers: real
// processes, which are killed.

#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "deploy/cli/run/port_reservation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int kSteps = 200;

class StrategyProgramTest : public ::testing::Test {
 protected:
  void Reserve(int workers) {
    for (int w = 0; w < workers; ++w) {
      ports_.push_back(*cli::PortReservation::Create());
      addresses_.push_back(
          absl::StrCat("\"127.0.0.1:", ports_.back().port(), "\""));
    }
    tasks_.resize(static_cast<size_t>(workers));
  }

  void Start(int worker, const std::string& checkpoint, int millis_per_step) {
    ChildProcess::Options options;
    options.program = LOCKSTEP_STRATEGY_PROGRAM;
    options.args = {directory_.Join(checkpoint), absl::StrCat(kSteps),
                    absl::StrCat(millis_per_step)};
    options.args.insert(options.args.end(), more_args_.begin(),
                        more_args_.end());
    options.environment["CUDA_VISIBLE_DEVICES"] = "";  // also where there are
    options.environment["TF_CONFIG"] = absl::StrCat(
        R"({"cluster": {"worker": [)", absl::StrJoin(addresses_, ", "),
        R"(]}, "task": {"type": "worker", "index": )", worker, "}}");
    options.log_path =
        directory_.Join(absl::StrCat(checkpoint, "-", worker, ".log"));
    auto child = ChildProcess::Start(options);
    ASSERT_OK(child);
    tasks_[static_cast<size_t>(worker)] = *std::move(child);
  }

  void StartAll(const std::string& checkpoint, int millis_per_step) {
    for (size_t w = 0; w < tasks_.size(); ++w) {
      Start(static_cast<int>(w), checkpoint, millis_per_step);
    }
  }

  void ExpectAllEnd() {
    for (const auto& task : tasks_) {
      EXPECT_THAT(task->Wait(kPatience), IsOkAndHolds(cli::TaskExit{}))
          << task->ReadLog();
      EXPECT_THAT(task->ReadLog(), HasSubstr("done"));
    }
  }

  std::string Checkpoint(const std::string& name) const {
    std::ifstream file(directory_.Join(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // The steps of a checkpoint; 0: none.
  int StepOf(const std::string& name) const {
    int step = 0;
    std::istringstream(Checkpoint(name)) >> step;
    return step;
  }

  void WaitForStep(const std::string& name, int step) {
    const absl::Time until = absl::Now() + kPatience;
    while (StepOf(name) < step) {
      ASSERT_LT(absl::Now(), until) << tasks_[0]->LastWords();
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  const TempDir directory_;
  std::vector<std::string> more_args_;
  std::vector<cli::PortReservation> ports_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<ChildProcess>> tasks_;
};

TEST_F(StrategyProgramTest, KilledWorkersComeBackAndTheBitsStay) {
  Reserve(2);
  StartAll("undisturbed", 0);
  ExpectAllEnd();
  ASSERT_EQ(StepOf("undisturbed"), kSteps);

  StartAll("killed", 2);
  // Either worker, once each some steps after a checkpoint.
  for (int kill = 0; kill < 6; ++kill) {
    const int worker = kill % 2;
    WaitForStep("killed", 20 * (kill + 1));
    tasks_[static_cast<size_t>(worker)]->Kill();
    Start(worker, "killed", 2);
  }
  ExpectAllEnd();
  EXPECT_EQ(Checkpoint("killed"), Checkpoint("undisturbed"));
  EXPECT_THAT(tasks_[0]->ReadLog(), HasSubstr("rank 1 has begun again"));
}

TEST_F(StrategyProgramTest, NcclWithoutGpusIsRefusedAtBothWorkers) {
  Reserve(2);
  more_args_ = {"nccl"};
  StartAll("refused", 0);
  for (const auto& task : tasks_) {
    EXPECT_THAT(task->Wait(kPatience), IsOkAndHolds(Not(cli::TaskExit{})));
    EXPECT_THAT(task->ReadLog(),
                AllOf(HasSubstr("FAILED_PRECONDITION"),
                      HasSubstr("NCCL cannot be used, because of rank 0"),
                      HasSubstr("or use communication DIRECT")));
  }
}

TEST_F(StrategyProgramTest, AProgramOfOneWorkerNeedsNoCluster) {
  ChildProcess::Options options;
  options.program = LOCKSTEP_STRATEGY_PROGRAM;
  options.args = {directory_.Join("alone"), absl::StrCat(kSteps), "0"};
  options.environment["TF_CONFIG"] = "{}";
  options.log_path = directory_.Join("log");
  EXPECT_THAT(RunProgram(options, kPatience), IsOkAndHolds(cli::TaskExit{}));
  EXPECT_EQ(StepOf("alone"), kSteps);
}

TEST_F(StrategyProgramTest, AMistakeInTheClusterIsSaidAtOnce) {
  ChildProcess::Options options;
  options.program = LOCKSTEP_STRATEGY_PROGRAM;
  options.args = {directory_.Join("x"), "1", "0"};
  options.environment["TF_CONFIG"] =
      R"({"cluster": {"worker": ["127.0.0.1:1"]},
          "task": {"type": "worker", "index": 1}})";
  options.log_path = directory_.Join("log");
  EXPECT_THAT(RunProgram(options, kPatience),
              IsOkAndHolds(Not(cli::TaskExit{})));
  std::ifstream file(options.log_path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("has no task worker 1"));
}

}  // namespace
}  // namespace lockstep::testing
