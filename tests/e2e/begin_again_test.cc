// `lockstep run` with existing checkpoints: its terminal output.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BeginAgainTest : public ::testing::Test {
 protected:
  BeginAgainTest() {
    std::ofstream(directory_.Join("cluster.json"))
        << R"({"cluster": {"chief": ["127.0.0.1:0"], "ps": ["127.0.0.1:0"],
               "worker": ["127.0.0.1:0"]}})";
  }

  // Runs the job to this step and returns the terminal output.
  std::string Run(int64_t steps, std::vector<std::string> more_args,
                  cli::TaskExit expected = {}) {
    std::vector<std::string> args = {
        "run",
        "--cluster",
        directory_.Join("cluster.json"),
        "--job",
        job_->job_file(),
        "--log_dir",
        directory_.Join(absl::StrCat("logs-", ++runs_)),
        "--set",
        absl::StrCat("train_steps=", steps)};
    args.insert(args.end(), more_args.begin(), more_args.end());
    auto run = ChildProcess::Start(
        {.program = ProgramPath("lockstep"),
         .args = args,
         .log_path = directory_.Join(absl::StrCat("out-", runs_))});
    EXPECT_THAT(run, IsOk());
    if (!run.ok()) return "";
    const auto exit = (*run)->Wait(kPatience);
    const std::string log = (*run)->ReadLog();
    EXPECT_THAT(exit, IsOkAndHolds(expected)) << log;
    return log;
  }

  const std::string& checkpoints() const { return job_->checkpoints(); }

  TempDir directory_;
  int runs_ = 0;
  // A TrainingJob whose own tasks are never started.
  std::unique_ptr<TrainingJob> job_ = TrainingJob::Make({.set = {}});
};

TEST_F(BeginAgainTest, TheTerminalSaysFromWhichStepItGoesOn) {
  EXPECT_THAT(Run(50, {}),
              AllOf(HasSubstr("model: step 50; one file of it: "),
                    HasSubstr("/checkpoints --out model.safetensors\ndone: "
                              "step 50, loss "),
                    HasSubstr("; train_steps reached\n")));
  EXPECT_THAT(Run(50, {}),
              HasSubstr(absl::StrCat("nothing to do: ", checkpoints(),
                                     " has step 50 of 50; to train again, ")));
  EXPECT_THAT(Run(80, {}),
              HasSubstr(absl::StrCat("resumed from the checkpoint of step 50 "
                                     "in ",
                                     checkpoints(), "\n")));
  EXPECT_THAT(Run(60, {}),
              HasSubstr(" has step 80, and train_steps is 60; raise "
                        "train_steps"));
  EXPECT_THAT(Run(60, {"--from", "51"}, {.code = 2}),
              AllOf(HasSubstr("--from 51"), HasSubstr("50, 80")));
  EXPECT_THAT(Run(60, {"--from", "50"}),
              AllOf(HasSubstr("the checkpoint of step 80 was set aside"),
                    HasSubstr("resumed from the checkpoint of step 50"),
                    HasSubstr("done: step 60, loss ")));
  EXPECT_THAT(Run(20, {"--fresh"}),
              AllOf(HasSubstr("the checkpoint of step 60 was set aside"),
                    HasSubstr("done: step 20, loss ")));
}

TEST_F(BeginAgainTest, ADirectoryThatCannotBeWrittenIsRefusedAtOnce) {
  std::ofstream(checkpoints()) << "in the way";

  EXPECT_THAT(Run(50, {}, {.code = 2}), HasSubstr("checkpoint.directory: "));
}

}  // namespace
}  // namespace lockstep::testing
