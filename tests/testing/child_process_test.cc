#include "tests/testing/child_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Milliseconds(50);

class ChildProcessTest : public ::testing::Test {
 protected:
  ChildProcess::Options Shell(const std::string& script) const {
    ChildProcess::Options options;
    options.program = "/bin/sh";
    options.args = {"-c", script};
    options.log_path = dir_.Join("log");
    return options;
  }

  // Returns the number that a script wrote to `name`; waits for a whole line.
  pid_t ReadPid(const std::string& name) const {
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
      std::ifstream file(dir_.Join(name));
      std::string line;
      int pid = 0;
      if (std::getline(file, line) && !file.eof() &&
          absl::SimpleAtoi(line, &pid)) {
        return pid;
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
    ADD_FAILURE() << "no process id in " << dir_.Join(name);
    return 0;
  }

  // True when `pid` is gone; reaping an orphan takes a moment.
  static bool IsGone(pid_t pid) {
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
      if (kill(pid, 0) < 0 && errno == ESRCH) return true;
      if (IsZombie(pid)) return true;  // this machine's init reaps nothing
      absl::SleepFor(absl::Milliseconds(5));
    }
    return false;
  }

  static bool IsZombie(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    stat >> id >> name >> state;
    return state == "Z";
  }

  TempDir dir_;
};

TEST_F(ChildProcessTest, ExitCodeAndOutputAreKept) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("echo out; echo err >&2; exit 7"));
  ASSERT_OK(child);

  EXPECT_THAT((*child)->Wait(kLong), IsOkAndHolds(cli::TaskExit{.code = 7}));
  EXPECT_EQ((*child)->ReadLog(), "out\nerr\n");
}

TEST_F(ChildProcessTest, EndBySignalIsToldApartFromAnExitCode) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("kill -TERM $$"));
  ASSERT_OK(child);

  EXPECT_THAT((*child)->Wait(kLong),
              IsOkAndHolds(cli::TaskExit{.signal = SIGTERM}));
}

TEST_F(ChildProcessTest, EnvironmentIsAddedToOurOwn) {
  ChildProcess::Options options = Shell("echo $TF_CONFIG; echo $PATH");
  options.environment = {{"TF_CONFIG", "{}"}};

  ASSERT_THAT(RunProgram(options, kLong), IsOkAndHolds(cli::TaskExit{}));

  std::ifstream log(options.log_path);
  std::stringstream text;
  text << log.rdbuf();
  EXPECT_EQ(text.str(), std::string("{}\n") + getenv("PATH") + "\n");
}

TEST_F(ChildProcessTest, MissingProgramIsAnErrorOfStart) {
  ChildProcess::Options options = Shell("");
  options.program = dir_.Join("absent");

  EXPECT_THAT(
      ChildProcess::Start(options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("absent")));
}

TEST_F(ChildProcessTest, UnwritableLogIsAnErrorOfStart) {
  ChildProcess::Options options = Shell("");
  options.log_path = dir_.Join("absent/log");

  EXPECT_THAT(
      ChildProcess::Start(options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("absent/log")));
}

TEST_F(ChildProcessTest, WaitGivesUpAndQuotesTheLastWords) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("echo waiting for godot; sleep 1000"));
  ASSERT_OK(child);
  ASSERT_OK((*child)->WaitForLog("godot", kLong));

  EXPECT_THAT((*child)->Wait(kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("waiting for godot")));
  EXPECT_FALSE((*child)->Poll().has_value());
}

TEST_F(ChildProcessTest, LogIsWaitedForFromTheLatestStartOnly) {
  ASSERT_OK(RunProgram(Shell("echo ready"), kLong));
  absl::StatusOr<std::unique_ptr<ChildProcess>> again =
      ChildProcess::Start(Shell("echo second; sleep 1000"));
  ASSERT_OK(again);
  ASSERT_OK((*again)->WaitForLog("second", kLong));

  EXPECT_THAT((*again)->WaitForLog("ready", kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(ChildProcessTest, WaitForLogEndsWithTheProcess) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("echo goodbye"));
  ASSERT_OK(child);

  EXPECT_THAT((*child)->WaitForLog("ready", kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("ready"), HasSubstr("goodbye"))));
}

TEST_F(ChildProcessTest, StandardInputIsEmpty) {
  EXPECT_THAT(RunProgram(Shell("read line || exit 3"), kLong),
              IsOkAndHolds(cli::TaskExit{.code = 3}));
}

TEST_F(ChildProcessTest, ProcessThatHasEndedTakesNoSignal) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("true"));
  ASSERT_OK(child);
  ASSERT_OK((*child)->Wait(kLong));

  EXPECT_THAT((*child)->Signal(SIGCONT),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ChildProcessTest, SignalReachesTheProcess) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("trap 'exit 5' USR1; echo ready;"
                                "while :; do sleep 0.01; done"));
  ASSERT_OK(child);
  ASSERT_OK((*child)->WaitForLog("ready", kLong));

  ASSERT_OK((*child)->Signal(SIGUSR1));

  EXPECT_THAT((*child)->Wait(kLong), IsOkAndHolds(cli::TaskExit{.code = 5}));
}

TEST_F(ChildProcessTest, DestructorKillsTheWholeGroup) {
  const std::string script =
      "trap '' TERM; sleep 1000 & echo $! > " + dir_.Join("pid") + "; wait";
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell(script));
  ASSERT_OK(child);
  const pid_t grandchild = ReadPid("pid");
  const pid_t pid = (*child)->pid();

  child->reset();

  EXPECT_TRUE(IsGone(pid));
  EXPECT_TRUE(IsGone(grandchild));
}

TEST_F(ChildProcessTest, StoppedProcessIsKilledToo) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(Shell("sleep 1000"));
  ASSERT_OK(child);
  ASSERT_OK((*child)->Signal(SIGSTOP));

  EXPECT_EQ((*child)->Kill(), (cli::TaskExit{.signal = SIGKILL}));
  EXPECT_EQ((*child)->Kill(), (cli::TaskExit{.signal = SIGKILL}));
}

// A process of the test stands for a killed test.
TEST_F(ChildProcessTest, ChildDiesWithAParentThatWasKilled) {
  const std::string path = dir_.Join("pid");
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Start(Shell("echo $$ > " + path + "; exec sleep 1000"));
    pause();
    _exit(child.ok() ? 0 : 1);
  }
  const pid_t child = ReadPid("pid");

  kill(parent, SIGKILL);

  EXPECT_TRUE(IsGone(child));
  waitpid(parent, nullptr, 0);
}

TEST_F(ChildProcessTest, FilesOfTheTestAreNotInherited) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string descriptor = "/proc/self/fd/" + std::to_string(ends[0]);

  absl::StatusOr<cli::TaskExit> status =
      RunProgram(Shell("test -e " + descriptor), kLong);

  EXPECT_THAT(status, IsOkAndHolds(cli::TaskExit{.code = 1}));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ChildProcessTest, ProgramThatOverstaysItsTimeIsKilled) {
  EXPECT_THAT(RunProgram(Shell("sleep 1000"), kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  // No process of this one is left.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace lockstep::testing
