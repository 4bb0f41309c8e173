// `lockstep run` with a command of the user: the worker in Python that was
// written from proto/README.md.

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/picture_files.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class UserProgramTest : public ::testing::Test {
 protected:
  UserProgramTest() {
    EXPECT_OK(WritePictures(
        {directory_.Join("images"), directory_.Join("labels")}, 400));
  }

  // Runs `command` in two workers, without a cluster file and a job file.
  void Start(const std::vector<std::string>& command) {
    std::vector<std::string> args = {
        "run", "--workers",  "2",         "--ps",
        "2",   "--insecure", "--log_dir", directory_.Join("logs")};
    for (const std::string& setting :
         {std::string("train_steps=1000"), std::string("batch_size=20"),
          std::string("optimizer.kind=ADAMW"),
          std::string("learning_rate=0.01"), std::string("max_part_bytes=64"),
          "data.train_images=" + directory_.Join("images"),
          "data.train_labels=" + directory_.Join("labels")}) {
      args.insert(args.end(), {"--set", setting});
    }
    args.push_back("--");
    args.insert(args.end(), command.begin(), command.end());
    auto run = ChildProcess::Start({.program = ProgramPath("lockstep"),
                                    .args = args,
                                    .log_path = directory_.Join("out")});
    ASSERT_OK(run);
    run_ = *std::move(run);
  }

  std::string WorkerLog() const {
    std::ifstream file(directory_.Join("logs/worker-0.log"));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  const TempDir directory_;
  std::unique_ptr<ChildProcess> run_;
};

TEST_F(UserProgramTest, TrainsAndIsStartedAgainWhenItIsKilled) {
  // The first process of worker 0 dies in the middle of the job.
  const std::string once = directory_.Join("died");
  Start({"/bin/sh", "-c",
         absl::StrCat("case $TF_CONFIG in *'\"index\":0,\"type\":\"worker\"'*) "
                      "if mkdir ",
                      once,
                      "; then set -- --die_when_selected 300; "
                      "fi;; esac; exec ",
                      LOCKSTEP_PYTHON, " ", LOCKSTEP_PYTHON_WORKER, " ",
                      LOCKSTEP_PYTHON_PROTOS, " \"$@\"")});

  EXPECT_THAT(run_->Wait(3 * kPatience), IsOkAndHolds(cli::TaskExit{}))
      << run_->ReadLog() << WorkerLog();
  EXPECT_THAT(run_->ReadLog(), HasSubstr("worker 0 runs again\n"));
  EXPECT_THAT(run_->ReadLog(), HasSubstr("done: step 1000"));
  EXPECT_THAT(WorkerLog(), HasSubstr("dies as a member"));
  EXPECT_THAT(WorkerLog(), HasSubstr("ends with 0"));
}

TEST_F(UserProgramTest, AFaultOfTheProgramEndsTheRunWithItsLastLine) {
  Start({LOCKSTEP_PYTHON, "-c", "raise ValueError('no such layer')"});

  const absl::StatusOr<cli::TaskExit> exit = run_->Wait(kPatience);

  ASSERT_OK(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(run_->ReadLog(), HasSubstr("ValueError: no such layer"));
  // The chief does not wait for workers that never come until it is killed.
  EXPECT_THAT(run_->ReadLog(), Not(HasSubstr("SIGKILL")));
}

TEST_F(UserProgramTest, ProgramGetsItsWordsAsTheyStand) {
  Start({"/bin/sh", "-c", "echo \"got $# words: $*\"; exit 1", "sh", "[1,2]",
         "[]", "--", "{}", "--job=x"});

  const absl::StatusOr<cli::TaskExit> exit = run_->Wait(kPatience);

  ASSERT_OK(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(WorkerLog(), HasSubstr("got 5 words: [1,2] [] -- {} --job=x\n"))
      << run_->ReadLog();
}

TEST_F(UserProgramTest, ProgramThatEndsWithoutHavingJoinedEndsTheRun) {
  Start({"/bin/true"});

  const absl::StatusOr<cli::TaskExit> exit = run_->Wait(kPatience);

  ASSERT_OK(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_THAT(run_->ReadLog(),
              HasSubstr("the program of worker 0 ended with exit code 0 before "
                        "the job was done"));
  EXPECT_THAT(run_->ReadLog(), Not(HasSubstr("SIGKILL")));
}

}  // namespace
}  // namespace lockstep::testing
