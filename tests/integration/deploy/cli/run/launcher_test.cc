#include "deploy/cli/run/launcher.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/status/status_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/deploy/cli/status/fake_coordinator_service.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TrainingResponse;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kPs = {TaskType::kPs, 0};
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

// Shell scripts replace the programs, and the test gives the chief's answers.
class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() {
    options_.chief = kChief;
    options_.chief_address = chief_.address();
    chief_.MarkHeard(heard_);
  }

  void Add(TaskId task, const std::string& script) {
    options_.launches.push_back({.task = task,
                                 .program = "/bin/sh",
                                 .args = {"-c", script},
                                 .environment = {{"TF_CONFIG", task.ToKey()}},
                                 .log_path = directory_.Join(task.ToKey())});
  }

  // Returns a script that waits until `path` exists.
  static std::string Until(const std::string& path) {
    return "while [ ! -e " + path + " ]; do sleep 0.02; done";
  }
  // Likewise, until the launcher has printed `text`.
  std::string UntilSaid(const std::string& text) const {
    return "while ! grep -q \"" + text + "\" " + directory_.Join("out") +
           "; do sleep 0.02; done";
  }
  // Returns a script that makes `ready` and then waits for SIGTERM, upon which
  // it does `last` and ends.
  static std::string Obedient(const std::string& ready,
                              const std::string& last) {
    return "trap '" + last + "; exit 143' TERM; touch " + ready +
           "; while :; do sleep 0.05; done";
  }

  int Run() {
    const std::string out = directory_.Join("out");
    const int fd = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    Terminal terminal(fd, nullptr, nullptr);
    SignalInbox signals = Launcher::CatchSignals();
    const int code = Launcher(options_, terminal, signals).Run();
    close(fd);
    return code;
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(directory_.Join(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TempDir directory_;
  // There when the launcher has an answer of the chief.
  const std::string heard_ = directory_.Join("heard");
  FakeCoordinator chief_;
  Launcher::Options options_;
};

TEST_F(LauncherTest, ARunThatIsDoneEndsWithTheRealFigures) {
  v1::GetStatusResponse done = TrainingResponse();
  done.set_state(v1::JOB_DONE);
  done.set_global_step(100);
  done.mutable_evaluation()->set_accuracy(0.89124);
  done.mutable_evaluation()->set_global_step(100);
  chief_.Say(done);
  Add(kChief, Until(heard_));
  Add(kPs, "exit 0");
  Add(kWorker0, "exit 0");

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(Read("out"),
              EndsWith("worker  passes  accepted  stale  waited\n"
                       "0            0         7      0   0.0 s\n"
                       "done: step 100, test accuracy 0.8912, 3.0 s\n"));
}

TEST_F(LauncherTest, TheResultStays) {
  v1::GetStatusResponse failed = TrainingResponse();
  failed.set_state(v1::JOB_FAILED);
  failed.set_reason("why");
  chief_.Say(failed);
  options_.result_path = directory_.Join("result");
  Add(kChief, Until(heard_) + "; exit 1");

  EXPECT_EQ(Run(), 1);
  const absl::StatusOr<RunResult> result =
      ParseResultJson(Read("result"), "result");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->state, JobState::kFailed);
  EXPECT_EQ(result->exit_code, 1);
  EXPECT_EQ(result->summary, "failed: step 7 of 100, 3.0 s; why");
}

TEST_F(LauncherTest, ALogThatIsTooLargeHasOnePredecessor) {
  options_.log_limit_bytes = 1000;
  Add(kChief, "head -c 2000 /dev/zero; " + Until(directory_.Join("chief:0.1")) +
                  "; echo goes on");

  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Read("chief:0"), "goes on\n");
  EXPECT_EQ(Read("chief:0.1"), std::string(2000, '\0'));
}

TEST_F(LauncherTest, EachTaskHasItsOwnTfConfigAndLog) {
  for (const TaskId task : {kChief, kPs, kWorker0}) {
    Add(task, "echo $TF_CONFIG speaks");
  }

  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Read("chief:0"), "chief:0 speaks\n");
  EXPECT_EQ(Read("ps:0"), "ps:0 speaks\n");
  EXPECT_EQ(Read("worker:0"), "worker:0 speaks\n");
}

TEST_F(LauncherTest, TrainingShowsInPlainLines) {
  chief_.Say(TrainingResponse());
  Add(kChief, UntilSaid("training has started"));
  Add(kWorker0, UntilSaid("training has started"));

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(Read("out"),
              HasSubstr("training has started: step 7 of 100, 1 worker\n"));
}

TEST_F(LauncherTest, AFailureShowsTheFirstTasksLog) {
  chief_.Say(TrainingResponse());
  const std::string lost = UntilSaid("ps 0 was ended");
  Add(kPs, Until(heard_) + "; echo out of memory >&2; kill -9 $$");
  Add(kChief, lost + "; exit 1");
  Add(kWorker0, lost + "; exit 129");

  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(
      Read("out"),
      AllOf(HasSubstr("ps 0 was ended by signal 9 (Killed); waiting for the "
                      "others to leave\n"),
            HasSubstr("ps 0 was ended by signal 9 (Killed); the end of " +
                      directory_.Join("ps:0") + ":\n  | out of memory\n"),
            HasSubstr("then chief 0 ended with exit code 1"),
            HasSubstr("then worker 0 ended with exit code 129"),
            HasSubstr("failed: step 7 of 100, 3.0 s; ps 0 was ended by")));
}

TEST_F(LauncherTest, ABackupWorkersDeathIsAWarningInTheEnd) {
  chief_.Say(TrainingResponse());
  Add(kChief, UntilSaid("worker 1 ended"));
  Add(kWorker0, UntilSaid("worker 1 ended"));
  Add(kWorker1, "exit 7");

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(Read("out"),
              AllOf(HasSubstr("worker 1 ended with exit code 7; the job goes "
                              "on\n"),
                    HasSubstr("warning: the job went on without a task: "
                              "worker 1 ended with exit code 7; see ")));
}

TEST_F(LauncherTest, TheReasonOfATaskThatEndsShowsAtOnce) {
  chief_.Say(TrainingResponse());
  Add(kChief, UntilSaid("evaluator 0 ended"));
  Add(kWorker0, UntilSaid("evaluator 0 ended"));
  Add({TaskType::kEvaluator, 0},
      "echo '2026-11-23T11:37:20.123 error   evaluator 0: no such file'; "
      "exit 1");

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(Read("out"),
              HasSubstr("evaluator 0 ended with exit code 1: no such file; the "
                        "job goes on\n"));
}

TEST_F(LauncherTest, AFailureThatIsPermanentIsNoStop) {
  chief_.Say(TrainingResponse());
  options_.needed_workers = 2;  // without a ps, the chief is one, too
  const std::string ready = directory_.Join("ready");
  Add(kChief, Obedient(ready, Until(heard_)));
  Add(kWorker0, Until(ready) + "; echo the gradient is NaN; exit 1");

  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(Read("out"),
              EndsWith("failed: step 7 of 100, 3.0 s; worker 0: the gradient "
                       "is NaN\n"));
}

TEST_F(LauncherTest, AJobThatAnOperatorStopsEndsWithThree) {
  v1::GetStatusResponse stopped = TrainingResponse();
  stopped.set_state(v1::JOB_STOPPED);
  chief_.Say(stopped);
  Add(kChief, Until(heard_) + "; exit 3");
  Add(kWorker0, Until(heard_) + "; exit 3");

  EXPECT_EQ(Run(), 3);
  EXPECT_THAT(Read("out"), EndsWith("stopped: step 7 of 100, 3.0 s\n"));
}

TEST_F(LauncherTest, TasksThatStayAfterTheirJobAreNamed) {
  v1::GetStatusResponse done = TrainingResponse();
  done.set_state(v1::JOB_DONE);
  chief_.Say(done);
  Add(kChief, Until(heard_));
  Add(kWorker0, Until(heard_) + "; sleep 4");

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(Read("out"),
              HasSubstr("the job is done; waiting for worker 0 to end, 30 s at "
                        "most\n"));
}

TEST_F(LauncherTest, TooFewWorkersEndTheOthersInGoodOrder) {
  chief_.Say(TrainingResponse());
  options_.needed_workers = 3;  // without a ps, the chief is one, too
  const std::string chief_ready = directory_.Join("chief_ready");
  const std::string worker_ready = directory_.Join("worker_ready");
  Add(kChief, Obedient(chief_ready, "echo leaves"));
  Add(kWorker0, Obedient(worker_ready, ":"));
  Add(kWorker1, Until(chief_ready) + "; " + Until(worker_ready) + "; exit 7");

  EXPECT_EQ(Run(), 1);
  EXPECT_EQ(Read("chief:0"), "leaves\n");
  EXPECT_THAT(Read("out"),
              AllOf(HasSubstr("sent SIGTERM to chief 0, worker 0\n"),
                    HasSubstr("worker 1 ended with exit code 7; its log is "
                              "empty"),
                    EndsWith("; worker 1 ended with exit code 7; a step needs "
                             "3 workers; left: 2\n")));
}

TEST_F(LauncherTest, AProgramThatCannotBeRunEndsTheRun) {
  Add(kPs, "echo $$; exec sleep 1000");
  Add(kChief, "");
  options_.launches.back().program = "/nowhere/chief";

  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(Read("out"), HasSubstr("failed: before the chief answered; "
                                     "/nowhere/chief: cannot be run: No such"));
}

TEST_F(LauncherTest, ATaskThatDiesRunsAgainAndItsLogGoesOn) {
  chief_.Say(TrainingResponse());
  options_.restarts = 1;
  const std::string again = directory_.Join("again");
  Add(kChief, Until(again));
  Add(kWorker0, "echo $TF_CONFIG; [ -e " + directory_.Join("lost") +
                    " ] && touch " + again + " && exit 0; touch " +
                    directory_.Join("lost") + "; kill -9 $$");

  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Read("worker:0"), "worker:0\nworker:0\n");
  EXPECT_THAT(
      Read("out"),
      AllOf(HasSubstr("worker 0 was ended by signal 9 (Killed); it will be "
                      "started again\n"),
            HasSubstr("worker 0 runs again\n"),
            HasSubstr("started again: worker 0; "), Not(HasSubstr("warning"))));
}

TEST_F(LauncherTest, AChiefThatDiesBeforeTheJobBeginsIsToldAgainWhereItDoes) {
  options_.restarts = 1;
  const std::string lost = directory_.Join("lost");
  Add(kChief, "echo began with $0; [ -e " + lost + " ] && exit 0; touch " +
                  lost + "; kill -9 $$");
  options_.launches.back().begin_args = {"--fresh"};

  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(Read("chief:0"), "began with --fresh\nbegan with --fresh\n");
}

TEST_F(LauncherTest, AChiefThatDiesLaterGoesOnWithTheJob) {
  chief_.Say(TrainingResponse());
  options_.restarts = 1;
  const std::string lost = directory_.Join("lost");
  Add(kChief, "echo began with $0; [ -e " + lost + " ] && exit 0; touch " +
                  lost + "; " + UntilSaid("training has started") +
                  "; kill -9 $$");
  options_.launches.back().begin_args = {"--fresh"};

  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(Read("chief:0"),
              AllOf(HasSubstr("began with --fresh\nbegan with "),
                    Not(EndsWith("--fresh\n"))));
}

TEST_F(LauncherTest, BlockedOutputHoldsUpNeitherRestartsNorAStop) {
  chief_.Say(TrainingResponse());
  chief_.RefuseToStop();
  options_.restarts = 1;
  options_.result_path = directory_.Join("result");
  const std::string lost = directory_.Join("lost");
  const std::string again = directory_.Join("again");
  const std::string over = directory_.Join("over");
  Add(kChief,
      "trap 'touch " + over + "; exit 143' TERM; while :; do sleep 0.05; done");
  Add(kWorker0, "[ -e " + lost + " ] && touch " + again + " && " + Until(over) +
                    " && exit 143; touch " + lost + "; kill -9 $$");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  while (write(ends[1], "x", 1) == 1) {
  }
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
  SignalInbox signals = Launcher::CatchSignals();
  // Not to the process: threads of the test would take it, and end the process.
  std::thread stop([&again, launcher = pthread_self()] {
    for (int i = 0; i < 3000 && access(again.c_str(), F_OK) != 0; ++i) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    pthread_kill(launcher, SIGTERM);
  });

  Terminal terminal(ends[1], nullptr, nullptr);
  EXPECT_EQ(Launcher(options_, terminal, signals).Run(), 128 + SIGTERM);

  stop.join();
  EXPECT_EQ(access(again.c_str(), F_OK), 0);
  EXPECT_FALSE(terminal.Flush());
  EXPECT_THAT(ParseResultJson(Read("result"), "result"), IsOk());
  close(ends[0]);
  close(ends[1]);
}

TEST_F(LauncherTest, ARunIsGivenUpWithTheReasonWhenATaskDiesTooOften) {
  chief_.Say(TrainingResponse());
  options_.restarts = 1;
  Add(kChief, "trap 'exit 143' TERM; while :; do sleep 0.05; done");
  Add(kWorker0, "echo out of memory; exit 137");
  Add(kWorker1, "trap 'exit 143' TERM; while :; do sleep 0.05; done");
  chief_.RefuseToStop();

  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(
      Read("out"),
      AllOf(
          HasSubstr("worker 0 ended with exit code 137; the end of"),
          HasSubstr("  | out of memory\n"),
          HasSubstr("worker 0 died 2 times within 10 minutes, and --restarts "
                    "allows 1; the last time it ended with exit code 137\n")));
}

TEST_F(LauncherTest, AProgramThatIsGoneWhenItIsNeededAgainEndsTheRun) {
  chief_.Say(TrainingResponse());
  chief_.RefuseToStop();
  options_.restarts = 1;
  const std::string program = directory_.Join("program");
  std::ofstream(program) << "#!/bin/sh\necho dies; rm " << program
                         << "; kill -9 $$\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  Add(kChief, "trap 'exit 143' TERM; while :; do sleep 0.05; done");
  Add(kPs, "");
  options_.launches.back().program = program;

  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(
      Read("out"),
      AllOf(HasSubstr("ps 0 was ended by signal 9 (Killed); the end of " +
                      directory_.Join("ps:0") + ":\n  | dies\n"),
            HasSubstr("ps 0 cannot be started again: " + program),
            Not(HasSubstr("started again: ps 0"))));
}

}  // namespace
}  // namespace lockstep::cli
