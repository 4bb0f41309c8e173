// `lockstep run` with the real programs, one of which is killed.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the child of `parent` whose TF_CONFIG names task `type` 0; -1 if
// there is none.
pid_t FindTask(pid_t parent, const std::string& type) {
  const std::string children =
      ReadFile(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  for (const auto pid : absl::StrSplit(children, ' ', absl::SkipWhitespace())) {
    const std::string environment =
        ReadFile(absl::StrCat("/proc/", pid, "/environ"));
    if (absl::StrContains(
            environment,
            absl::StrCat("\"task\":{\"index\":0,\"type\":\"", type, "\"}"))) {
      return static_cast<pid_t>(std::stol(std::string(pid)));
    }
  }
  return -1;
}

// A run of one chief, one server and two workers on the job of a TrainingJob,
// whose own tasks are never started.
class RunRestartTest : public ::testing::Test {
 protected:
  RunRestartTest() {
    std::ofstream(directory_.Join("cluster.json"))
        << R"({"cluster": {"chief": ["127.0.0.1:0"], "ps": ["127.0.0.1:0"],
               "worker": ["127.0.0.1:0", "127.0.0.1:0"]}})";
  }

  void Start() {
    const std::vector<std::string> args = {"run",
                                           "--cluster",
                                           directory_.Join("cluster.json"),
                                           "--job",
                                           job_->job_file(),
                                           "--log_dir",
                                           logs(),
                                           "--compute_threads",
                                           "1",
                                           "--set",
                                           "train_steps=6000",
                                           "--set",
                                           "batch_size=1000"};
    auto run = ChildProcess::Start({.program = ProgramPath("lockstep"),
                                    .args = args,
                                    .log_path = directory_.Join("out")});
    ASSERT_THAT(run, IsOk());
    run_ = *std::move(run);
    ASSERT_THAT(run_->WaitForLog("training ", kPatience), IsOk());
  }

  void KillTask(const std::string& type) {
    const pid_t task = FindTask(run_->pid(), type);
    ASSERT_GT(task, 0);
    ASSERT_EQ(kill(task, SIGKILL), 0);
  }

  std::string logs() const { return directory_.Join("logs"); }

  TempDir directory_;
  std::unique_ptr<TrainingJob> job_ = TrainingJob::Make({.set = {}});
  std::unique_ptr<ChildProcess> run_;
};

TEST_F(RunRestartTest, AWorkerThatIsKilledRunsAgainAndTheJobIsDone) {
  Start();
  KillTask("worker");

  EXPECT_THAT(run_->Wait(3 * kPatience), IsOkAndHolds(cli::TaskExit{}));
  EXPECT_THAT(run_->ReadLog(),
              HasSubstr("worker 0 was ended by signal 9 (Killed); it will be "
                        "started again\n"));
  EXPECT_THAT(run_->ReadLog(), HasSubstr("worker 0 runs again\n"));
  EXPECT_THAT(run_->ReadLog(), HasSubstr("started again: worker 0; "));
  EXPECT_THAT(run_->ReadLog(), HasSubstr("done: step 6000"));
}

}  // namespace
}  // namespace lockstep::testing
