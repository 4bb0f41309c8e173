// The flags of `lockstep run`, in this process.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "deploy/cli/run/run_command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/process/forbid_threads.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;

class RunCommandFlagsTest : public ::testing::Test {
 protected:
  ~RunCommandFlagsTest() override { close(null_); }

  // The words in reverse, as CLI11 takes them.
  void Parse(std::vector<std::string> reversed) {
    app_.parse(std::move(reversed));
  }
  int Run(const UserCommand& command = {}) {
    Terminal terminal(null_, nullptr, nullptr);
    return command_.Run(terminal, err_, command);
  }

  const int null_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
  CLI::App app_;
  RunCommand command_{app_};
  std::ostringstream err_;
};

TEST_F(RunCommandFlagsTest, IsChosenByItsName) {
  Parse({});
  EXPECT_FALSE(command_.chosen());
  Parse({"job", "--job", "run"});
  EXPECT_TRUE(command_.chosen());
}

TEST_F(RunCommandFlagsTest, JobThatIsNotThereIsAUsageError) {
  Parse({"/no/such/job", "--job", "1", "--workers", "1", "--ps", "run"});
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(err_.str(), HasSubstr("/no/such/job"));
}

TEST_F(RunCommandFlagsTest, AGivenNumberOfServersIsNotReplaced) {
  Parse({"true", "--", "batch_size=2", "--set", "train_steps=1", "--set",
         "strategy.kind=MULTI_WORKER_MIRRORED", "--set", "1", "--ps", "3",
         "--workers", "run"});
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(err_.str(),
              HasSubstr("--ps is 1, but under MULTI_WORKER_MIRRORED"));
}

TEST_F(RunCommandFlagsTest, WordsOfACommandStayAsTheyStand) {
  Parse({"batch_size=2", "--set", "train_steps=1", "--set", "1", "--workers",
         "run"});
  EXPECT_EQ(Run({"[no,such]"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("[no,such]: there is no such program"));
}

TEST_F(RunCommandFlagsTest, TooFewThreadsAreNamedBeforeATaskIsStarted) {
  Parse({"batch_size=2", "--set", "train_steps=1", "--set", "1", "--workers",
         "run"});
  EXPECT_EXIT(
      {
        ForbidThreads();
        const int code = Run({"/bin/true"});
        std::cerr << err_.str();
        _exit(code);
      },
      ::testing::ExitedWithCode(2), HasSubstr("threads can be made"));
}

TEST_F(RunCommandFlagsTest, TooFewFilesAreNamedBeforeATaskIsStarted) {
  Parse({"batch_size=2", "--set", "train_steps=1", "--set", "1", "--workers",
         "run"});
  const rlimit few = {16, 16};
  EXPECT_EXIT(
      {
        if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
        const int code = Run({"/bin/true"});
        std::cerr << err_.str();
        _exit(code);
      },
      ::testing::ExitedWithCode(2), HasSubstr("limit of open files"));
}

}  // namespace
}  // namespace lockstep::cli
