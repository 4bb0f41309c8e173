#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "deploy/cli/run/port_reservation.h"
#include "deploy/cli/run/state_directory.h"
#include "deploy/cli/run/supervisor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/deploy/cli/status/fake_coordinator_service.h"
#include "tests/integration/deploy/cli/tasks/process_end.h"
#include "tests/testing/child_process.h"
#include "tests/testing/pseudo_terminal.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

// The real `lockstep`, with shell scripts as the cluster's programs.

namespace lockstep::cli {
namespace {

using ::lockstep::testing::ChildProcess;
using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::PidPipe;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TrainingResponse;
using ::lockstep::testing::WaitUntilGone;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Seconds(60);

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() {
    Write("data", "");
    Write("job.textproto",
          "name: 'tiny' train_steps: 5 batch_size: 2\n"
          "data { train_images: '" +
              directory_.Join("data") + "' train_labels: '" +
              directory_.Join("data") + "' }\n");
    Write("cluster.json", "{\"cluster\": {\"chief\": [\"" + chief_address_ +
                              "\"], \"ps\": [\"127.0.0.1:0\"], \"worker\": "
                              "[\"localhost:0\"]}}");
    for (const char* program : {"chief", "ps_server", "worker"}) {
      SetProgram(program, "exec sleep 1000");
    }
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.Join(name)) << text;
  }

  // Every script writes its process id first.
  void SetProgram(const std::string& name, const std::string& script) {
    const std::string path = directory_.Join(name);
    Write(name, "#!/bin/sh\necho $$ > " + pids_.path() + "\n" + script + "\n");
    chmod(path.c_str(), 0755);
  }

  // Scripts that end with code 143 when the file "stop" exists.
  void SetObedientPrograms() {
    for (const char* program : {"chief", "ps_server", "worker"}) {
      SetProgram(program, "while [ ! -e " + directory_.Join("stop") +
                              " ]; do sleep 0.05; done; exit 143");
    }
  }

  std::vector<std::string> Args() const {
    return {"run",
            "--cluster",
            directory_.Join("cluster.json"),
            "--job",
            directory_.Join("job.textproto"),
            "--log_dir",
            directory_.Join("logs"),
            "--program_dir",
            directory_.path(),
            "--insecure"};  // as the fake chief
  }

  std::unique_ptr<ChildProcess> Start() {
    auto process = ChildProcess::Start({.program = LOCKSTEP_PROGRAM,
                                        .args = Args(),
                                        .log_path = directory_.Join("out")});
    EXPECT_THAT(process, IsOk());
    if (!process.ok()) return nullptr;
    // Its port must be free until then.
    EXPECT_THAT((*process)->WaitForLog("status: ", kPatience), IsOk());
    StartChief();
    return *std::move(process);
  }

  void StartChief() {
    chief_.emplace(chief_address_);
    chief_->Say(TrainingResponse());
  }

  // Returns the ids of all three programs when they run.
  std::vector<pid_t> Pids() const {
    return {pids_.Read(), pids_.Read(), pids_.Read()};
  }

  // Returns the directory of a launcher in memory; empty before it is made.
  static std::string StateOf(pid_t launcher) {
    const std::string end = "-" + std::to_string(launcher);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(
             StateDirectory::DefaultParent(), ignored)) {
      const std::string path = entry.path().string();
      if (path.find("/lockstep-run-") != std::string::npos &&
          path.ends_with(end)) {
        return path;
      }
    }
    return "";
  }

  std::string FirstLine(const std::string& name) const {
    std::ifstream file(directory_.Join(name));
    std::string line;
    std::getline(file, line);
    return line;
  }

  TempDir directory_;
  const PidPipe pids_{directory_.Join("pids")};
  // Keeps other processes from using this port.
  const absl::StatusOr<PortReservation> port_ = PortReservation::Create();
  const std::string chief_address_ =
      "127.0.0.1:" + std::to_string(port_->port());
  std::optional<FakeCoordinator> chief_;
};

TEST_F(RunCommandTest, CtrlCStopsTheJobThroughTheChief) {
  SetObedientPrograms();
  const auto run = Start();
  ASSERT_NE(run, nullptr);
  ASSERT_THAT(run->WaitForLog("training ", kPatience), IsOk());

  ASSERT_THAT(run->Signal(SIGINT), IsOk());
  chief_->WaitForStop();
  Write("stop", "");

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(TaskExit{.code = 130}));
  EXPECT_THAT(run->ReadLog(), HasSubstr("interrupted: step 7 of 100, 3.0 s\n"));
}

TEST_F(RunCommandTest, OtherSignalsHaveCodesOfTheirOwn) {
  SetObedientPrograms();
  for (const int signal : {SIGHUP, SIGQUIT, SIGTERM}) {
    chief_.reset();
    std::filesystem::remove(directory_.Join("stop"));
    const auto run = Start();
    ASSERT_NE(run, nullptr);
    Pids();

    ASSERT_THAT(run->Signal(signal), IsOk());
    // Programs that end before the signal is seen would be started again.
    chief_->WaitForStop();
    Write("stop", "");

    EXPECT_THAT(run->Wait(kPatience),
                IsOkAndHolds(TaskExit{.code = 128 + signal}));
  }
}

// So many certificates take longer than the signal.
TEST_F(RunCommandTest, ASignalDuringTheSetUpLeavesNoDirectory) {
  auto run = ChildProcess::Start(
      {.program = LOCKSTEP_PROGRAM,
       .args = {"run", "--workers", "100", "--job",
                directory_.Join("job.textproto"), "--log_dir",
                directory_.Join("logs"), "--program_dir", directory_.path()},
       .log_path = directory_.Join("out")});
  ASSERT_THAT(run, IsOk());
  std::string state;
  while (state.empty() && !(*run)->Poll().has_value()) {
    state = StateOf((*run)->pid());
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_FALSE(state.empty()) << (*run)->LastWords();

  ASSERT_THAT((*run)->Signal(SIGTERM), IsOk());

  EXPECT_THAT((*run)->Wait(kPatience),
              IsOkAndHolds(TaskExit{.code = 128 + SIGTERM}));
  EXPECT_FALSE(std::filesystem::exists(state)) << state;
}

TEST_F(RunCommandTest, ASecondCtrlCEndsAllAtOnce) {
  const auto run = Start();
  ASSERT_NE(run, nullptr);
  const std::vector<pid_t> pids = Pids();

  ASSERT_THAT(run->Signal(SIGINT), IsOk());
  ASSERT_THAT(run->WaitForLog("Ctrl-C ends it at once", kPatience), IsOk());
  // An earlier one would count as the same Ctrl-C.
  absl::SleepFor(Supervisor::kSecondSignal + absl::Milliseconds(100));
  // Once: a third one could meet a process that no longer takes signals.
  ASSERT_THAT(run->Signal(SIGINT), IsOk());

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(TaskExit{.code = 130}));
  EXPECT_THAT(run->ReadLog(), HasSubstr("sent SIGKILL to chief 0, "));
  EXPECT_THAT(run->ReadLog(), Not(HasSubstr("sent SIGTERM")));
  for (const pid_t pid : pids) EXPECT_EQ(kill(pid, 0), -1) << pid;
}

TEST_F(RunCommandTest, AChiefThatRefusesIsTerminated) {
  SetProgram("chief", "trap 'touch " + directory_.Join("stop") +
                          "; exit 143' TERM; while :; do sleep 0.05; done");
  for (const char* program : {"ps_server", "worker"}) {
    SetProgram(program, "while [ ! -e " + directory_.Join("stop") +
                            " ]; do sleep 0.05; done; exit 143");
  }
  const auto run = Start();
  ASSERT_NE(run, nullptr);
  chief_->RefuseToStop();
  ASSERT_THAT(run->WaitForLog("training ", kPatience), IsOk());

  ASSERT_THAT(run->Signal(SIGINT), IsOk());

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(TaskExit{.code = 130}));
  EXPECT_THAT(run->ReadLog(), HasSubstr("sent SIGTERM to chief 0\n"));
}

TEST_F(RunCommandTest, NoTaskOutlivesALauncherThatIsKilled) {
  const auto run = Start();
  ASSERT_NE(run, nullptr);
  const std::vector<pid_t> pids = Pids();
  for (const pid_t pid : pids) ASSERT_GT(pid, 0);

  ASSERT_THAT(run->Signal(SIGKILL), IsOk());

  for (const pid_t pid : pids) EXPECT_TRUE(WaitUntilGone(pid)) << pid;
}

TEST_F(RunCommandTest, TheNextRunSweepsWhatAKilledLauncherLeft) {
  SetProgram("ps_server", "echo $5; kill -9 $PPID; exec sleep 1000");
  const auto run = Start();
  ASSERT_NE(run, nullptr);
  ASSERT_THAT(run->Wait(kPatience), IsOkAndHolds(TaskExit{.signal = SIGKILL}));
  const std::string state = FirstLine("logs/ps-0.log");
  ASSERT_TRUE(std::filesystem::exists(state)) << state;
  for (const char* program : {"chief", "ps_server", "worker"}) {
    SetProgram(program, "exit 0");
  }

  chief_.reset();
  const auto next = Start();

  EXPECT_THAT(next->Wait(kPatience), IsOkAndHolds(TaskExit{}));
  EXPECT_FALSE(std::filesystem::exists(state)) << state;
}

TEST_F(RunCommandTest, TheServersStateGoesWithTheRun) {
  SetProgram("chief", "exit 0");
  SetProgram("worker", "exit 0");
  SetProgram("ps_server", "echo $5; echo x > $5/variables");
  const auto run = Start();
  ASSERT_NE(run, nullptr);

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(TaskExit{}));
  const std::string state = FirstLine("logs/ps-0.log");
  EXPECT_THAT(state, HasSubstr("lockstep-run-"));
  EXPECT_FALSE(std::filesystem::exists(state)) << state;
}

TEST_F(RunCommandTest, ATerminalShowsOneLiveLine) {
  SetObedientPrograms();
  testing::TerminalProgram run(LOCKSTEP_PROGRAM, Args(), 80);

  std::string shown;
  bool stopped = false;
  while (const auto more = run.ReadMore()) {
    shown += *more;
    if (!chief_.has_value() && shown.find("status: ") != std::string::npos) {
      StartChief();
    }
    if (!stopped && shown.find("7/100") != std::string::npos) {
      stopped = true;
      run.Type("\x03");  // Ctrl-C
      chief_->WaitForStop();
      Write("stop", "");
    }
  }

  EXPECT_EQ(run.Wait(), 130);
  EXPECT_THAT(shown,
              AllOf(HasSubstr("\r\x1b[K\x1b[1mstep 7/100\x1b[0m  w0 7/0/0s"),
                    HasSubstr("interrupted: step 7 of 100, 3.0 s\r\n")));
}

TEST_F(RunCommandTest, UsageErrorsExitWithTwo) {
  const auto usage = [this](std::vector<std::string> args) {
    return testing::RunProgram({.program = LOCKSTEP_PROGRAM,
                                .args = std::move(args),
                                .log_path = directory_.Join("out")},
                               kPatience);
  };

  EXPECT_THAT(usage({}), IsOkAndHolds(TaskExit{.code = 2}));
  EXPECT_THAT(usage({"rn"}), IsOkAndHolds(TaskExit{.code = 2}));
  EXPECT_THAT(usage({"run", "--jbo", "x"}), IsOkAndHolds(TaskExit{.code = 2}));
  EXPECT_THAT(usage({"run", "--cluster", "/nowhere", "--job", "x"}),
              IsOkAndHolds(TaskExit{.code = 2}));
  EXPECT_THAT(usage({"run", "--help"}), IsOkAndHolds(TaskExit{}));
  std::ifstream file(directory_.Join("out"));
  const std::string out(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(out,
              AllOf(HasSubstr("did you mean run?"),
                    HasSubstr("did you mean --job?"), HasSubstr("/nowhere")));
}

}  // namespace
}  // namespace lockstep::cli
