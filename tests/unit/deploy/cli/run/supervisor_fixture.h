#ifndef LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_RUN_SUPERVISOR_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_RUN_SUPERVISOR_FIXTURE_H_

#include <signal.h>

#include <string>

#include "absl/time/time.h"
#include "deploy/cli/run/supervisor.h"

namespace lockstep::testing {

using Kind = SupervisorAction::Kind;
using Verdict = RunOutcome::Verdict;

inline constexpr TaskId kChief = {TaskType::kChief, 0};
inline constexpr TaskId kPs = {TaskType::kPs, 0};
inline constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
inline constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
inline constexpr TaskId kEvaluator = {TaskType::kEvaluator, 0};
inline constexpr TaskExit kOk = {};
inline constexpr TaskExit kFailedCode = {.code = 1};
inline constexpr TaskExit kStoppedCode = {.code = 143};
inline constexpr TaskExit kKilled = {.signal = SIGKILL};

inline absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

inline SupervisorAction Signal(TaskId task, int signal) {
  return {.kind = Kind::kSignal, .task = task, .signal = signal};
}

inline SupervisorAction AskToStop(const std::string& reason) {
  return {.kind = Kind::kAskToStop, .reason = reason};
}

inline SupervisorAction Start(TaskId task) {
  return {.kind = Kind::kStart, .task = task};
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_RUN_SUPERVISOR_FIXTURE_H_
