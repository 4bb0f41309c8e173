// A program of a user that trains with a strategy on several workers: real
// processes, which are killed.

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/strategy/strategy_program_fixture.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Many: the workers must not be done before the last kill.
constexpr int kSteps = 400;

class StrategyProgramTest : public StrategyProgramFixture {
 protected:
  StrategyProgramTest() : StrategyProgramFixture(kSteps) {}
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
    Task(worker).Kill();
    Start(worker, "killed", 2);
  }
  ExpectAllEnd();
  EXPECT_EQ(Checkpoint("killed"), Checkpoint("undisturbed"));
  EXPECT_THAT(Task(0).ReadLog(), HasSubstr("rank 1 has begun again"));
}

TEST_F(StrategyProgramTest, NcclWithoutGpusIsRefusedAtBothWorkers) {
  Reserve(2);
  more_args_ = {"nccl"};
  StartAll("refused", 0);
  for (int worker = 0; worker < 2; ++worker) {
    EXPECT_THAT(Task(worker).Wait(kPatience),
                IsOkAndHolds(Not(cli::TaskExit{})));
    EXPECT_THAT(Task(worker).ReadLog(),
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
