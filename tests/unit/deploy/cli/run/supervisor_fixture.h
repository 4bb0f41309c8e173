#ifndef LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_RUN_SUPERVISOR_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_RUN_SUPERVISOR_FIXTURE_H_

#include <signal.h>

#include <string>

#include "absl/time/time.h"
#include "deploy/cli/run/supervisor.h"
#include "gtest/gtest.h"

namespace lockstep::testing {

using Kind = cli::SupervisorAction::Kind;
using Verdict = cli::RunOutcome::Verdict;

inline constexpr TaskId kChief = {TaskType::kChief, 0};
inline constexpr TaskId kPs = {TaskType::kPs, 0};
inline constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
inline constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
inline constexpr TaskId kEvaluator = {TaskType::kEvaluator, 0};
inline constexpr cli::TaskExit kOk = {};
inline constexpr cli::TaskExit kFailedCode = {.code = 1};
inline constexpr cli::TaskExit kHeldCode = {.code = 3};
inline constexpr cli::TaskExit kStoppedCode = {.code = 143};
inline constexpr cli::TaskExit kKilled = {.signal = SIGKILL};

inline absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

inline cli::SupervisorAction Signal(TaskId task, int signal) {
  return {.kind = Kind::kSignal, .task = task, .signal = signal};
}

inline cli::SupervisorAction AskToStop(const std::string& reason) {
  return {.kind = Kind::kAskToStop, .reason = reason};
}

inline cli::SupervisorAction Note(const std::string& reason) {
  return {.kind = Kind::kNote, .reason = reason};
}

inline cli::SupervisorAction Start(TaskId task) {
  return {.kind = Kind::kStart, .task = task};
}

// A run of all kinds of tasks.
class SupervisorTest : public ::testing::Test {
 protected:
  cli::Supervisor supervisor_{
      {.tasks = {kPs, kChief, kWorker0, kWorker1, kEvaluator},
       .chief = kChief,
       .needed_workers = 1}};

  void ExitRest(cli::TaskExit exit, absl::Time now) {
    for (const TaskId task : {kPs, kChief, kWorker0, kWorker1, kEvaluator}) {
      supervisor_.OnTaskExit(task, exit, now);
    }
  }
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_RUN_SUPERVISOR_FIXTURE_H_
