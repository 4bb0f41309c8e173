#include "chief/recovery/recovery_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

// More than the attempts of one step under one chief.
constexpr int64_t kAttemptsOfAnEpoch = 1'000'000;

// What is wrong with the server's state, if it cannot go on from `step`.
std::string Trouble(const ServerReport& report, bool in_place, int64_t step) {
  if (!report.has_parts) return "";
  if (report.committed_step < 0) return "has lost its state";
  if (in_place && !report.active) return "was killed in the midst of a step";
  if (report.committed_step == step) return "";
  if (report.committed_step == step - 1 && report.prepared_step == step) {
    return "";
  }
  return absl::StrCat("is at step ", report.committed_step, ", not at ", step);
}

}  // namespace

RecoveryPlan MakeRecoveryPlan(absl::Span<const ServerReport> reports,
                              bool in_place, int64_t checkpoint_step,
                              int64_t known_step) {
  int64_t newest = -1;
  for (const ServerReport& report : reports) {
    newest = std::max(newest, report.committed_step);
  }
  RecoveryPlan plan;
  plan.step = std::max<int64_t>(checkpoint_step, 0);
  if (newest < 0) return plan;
  const int64_t step = reports[0].committed_step;
  plan.repeated_steps =
      std::max<int64_t>(std::max(newest, known_step) - plan.step, 0);
  plan.action = RecoveryPlan::Action::kGoBack;
  for (size_t server = 0; server < reports.size(); ++server) {
    const std::string trouble = Trouble(reports[server], in_place, step);
    if (trouble.empty()) continue;
    plan.reason = absl::StrCat("ps ", server, " ", trouble);
    return plan;
  }
  if (checkpoint_step > newest) {
    plan.reason = absl::StrCat("the checkpoint of step ", checkpoint_step,
                               " is newer than the servers' step ", newest);
    return plan;
  }
  if (step < known_step) {
    plan.reason = absl::StrCat("another chief has taken the servers back to ",
                               "step ", step, " from step ", known_step);
    return plan;
  }
  plan.action = RecoveryPlan::Action::kResume;
  plan.step = step;
  plan.repeated_steps = 0;
  plan.redo = std::any_of(
      reports.begin(), reports.end(), [&reports](const ServerReport& report) {
        return !report.active ||
               (report.committed_step == reports[0].committed_step &&
                report.attempt > reports[0].attempt);
      });
  return plan;
}

int64_t FirstAttempt(uint64_t epoch) {
  return static_cast<int64_t>(epoch) * kAttemptsOfAnEpoch + 1;
}

}  // namespace lockstep::chief
