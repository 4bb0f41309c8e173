#include "deploy/cli/tasks/task_process.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/deploy/cli/tasks/process_end.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::PidPipe;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::WaitUntilGone;
using ::testing::HasSubstr;
using ::testing::Optional;

class TaskProcessTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<TaskProcess>> Shell(
      const std::string& script) {
    return TaskProcess::Start({.program = "/bin/sh",
                               .args = {"-c", script},
                               .environment = {{"TF_CONFIG", "mine"}},
                               .log_path = log_});
  }

  // As Shell(), from a thread that blocks a signal, as the launcher does, which
  // reads its signals.
  absl::StatusOr<std::unique_ptr<TaskProcess>> ShellOfBlocker(
      int number, const std::string& script) {
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, number);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    auto process = Shell(script);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return process;
  }

  std::optional<TaskExit> WaitFor(TaskProcess& process) {
    WaitUntilGone(process.pid());
    return process.Poll();
  }

  std::string Log() const {
    std::ifstream file(log_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  TempDir directory_;
  const std::string log_ = directory_.Join("log");
  const PidPipe pids_{directory_.Join("pids")};
};

TEST_F(TaskProcessTest, OutputAndErrorsGoToTheLog) {
  auto process = Shell("echo out; echo err >&2; exit 3");
  ASSERT_THAT(process, IsOk());

  EXPECT_THAT(WaitFor(**process), Optional(TaskExit{.code = 3}));
  EXPECT_EQ(Log(), "out\nerr\n");
  EXPECT_THAT((*process)->Poll(), Optional(TaskExit{.code = 3}));
}

TEST_F(TaskProcessTest, EnvironmentIsOursWithTheAdditions) {
  setenv("TF_CONFIG", "inherited", 1);
  setenv("LOCKSTEP_TEST_KEPT", "kept", 1);
  auto process = Shell(
      "echo $TF_CONFIG $LOCKSTEP_TEST_KEPT; env | grep -c "
      "^TF_CONFIG=");
  ASSERT_THAT(process, IsOk());
  WaitFor(**process);

  EXPECT_EQ(Log(), "mine kept\n1\n");
}

TEST_F(TaskProcessTest, ReadsNothingAndLeadsItsOwnGroup) {
  auto process = Shell("cat; ps -o pgid= -p $$ 2>/dev/null; exec sleep 1000");
  ASSERT_THAT(process, IsOk());

  EXPECT_EQ(getpgid((*process)->pid()), (*process)->pid());
}

TEST_F(TaskProcessTest, SignalsThatWeBlockReachTheProgram) {
  auto process = ShellOfBlocker(SIGTERM, "exec sleep 1000");
  ASSERT_THAT(process, IsOk());
  EXPECT_EQ((*process)->Poll(), std::nullopt);

  (*process)->Signal(SIGTERM);

  EXPECT_THAT(WaitFor(**process), Optional(TaskExit{.signal = SIGTERM}));
  (*process)->Signal(SIGTERM);  // the process is gone: no effect
}

// For pthread_atfork(), whose functions stay: whether children get a SIGINT.
bool interrupts_children = false;

TEST_F(TaskProcessTest, ASignalBeforeTheProgramHasItsGroupDoesNotEndIt) {
  ASSERT_EQ(pthread_atfork(nullptr, nullptr,
                           [] {
                             if (interrupts_children) raise(SIGINT);
                           }),
            0);
  interrupts_children = true;

  auto process = ShellOfBlocker(SIGINT, "exit 4");

  interrupts_children = false;
  ASSERT_THAT(process, IsOk());
  EXPECT_THAT(WaitFor(**process), Optional(TaskExit{.code = 4}));
}

TEST_F(TaskProcessTest, SignalsThatWeIgnoreReachTheProgram) {
  const auto before = signal(SIGTERM, SIG_IGN);
  auto process = Shell("exec sleep 1000");
  signal(SIGTERM, before);
  ASSERT_THAT(process, IsOk());

  (*process)->Signal(SIGTERM);

  EXPECT_THAT(WaitFor(**process), Optional(TaskExit{.signal = SIGTERM}));
}

TEST_F(TaskProcessTest, AnEndIsSeenThoughOurParentIgnoresThoseOfChildren) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  auto process = Shell("exit 7");
  ASSERT_THAT(process, IsOk());

  EXPECT_THAT(WaitFor(**process), Optional(TaskExit{.code = 7}));
  signal(SIGCHLD, before);
}

TEST_F(TaskProcessTest, AnEndThatOtherCodeHasTakenIsAFailure) {
  auto process = Shell("exit 0");
  ASSERT_THAT(process, IsOk());
  ASSERT_EQ(waitpid((*process)->pid(), nullptr, 0), (*process)->pid());

  EXPECT_THAT((*process)->Poll(), Optional(TaskExit{.code = 1}));
}

TEST_F(TaskProcessTest, ChildrenOfAProgramThatHasEndedAreKilled) {
  auto process = Shell("sleep 1000 & echo $! > " + pids_.path());
  ASSERT_THAT(process, IsOk());
  const pid_t left = pids_.Read();
  ASSERT_GT(left, 0);

  WaitFor(**process);

  EXPECT_TRUE(WaitUntilGone(left));
}

TEST_F(TaskProcessTest, DiesWithItsObject) {
  pid_t pid = 0;
  {
    auto process = Shell("trap '' TERM; while :; do sleep 1000; done");
    ASSERT_THAT(process, IsOk());
    pid = (*process)->pid();
  }

  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(TaskProcessTest, DiesWithALauncherThatIsKilled) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    auto process = Shell("echo $$ > " + pids_.path() + "; exec sleep 1000");
    pause();
    _exit(process.ok() ? 0 : 1);
  }
  const pid_t task = pids_.Read();
  ASSERT_GT(task, 0);
  ASSERT_EQ(kill(task, 0), 0);

  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);

  EXPECT_TRUE(WaitUntilGone(task));
}

TEST_F(TaskProcessTest, AProgramThatCannotBeRunIsNamed) {
  EXPECT_THAT(
      TaskProcess::Start({.program = "/nowhere/worker", .log_path = log_}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("/nowhere/worker: cannot be run: No such")));
}

TEST_F(TaskProcessTest, ALogThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(
      TaskProcess::Start({.program = "/bin/sh", .log_path = "/nowhere/log"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nowhere/log")));
}

}  // namespace
}  // namespace lockstep::cli
