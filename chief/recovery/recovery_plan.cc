#include "chief/recovery/recovery_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/epoch_bounds.h"

namespace lockstep::chief {
namespace {

// The reason why the server cannot continue from `step`; empty: it can.
std::string Trouble(const ServerReport& report, bool in_place, int64_t step) {
  // A server without parts has no state that could be lost.
  if (!report.has_parts || !report.takes_part) return "";
  if (report.committed_step < 0) return "has lost its state";
  if (in_place && !report.active) return "was killed in the midst of a step";
  if (report.committed_step == step) return "";
  // Prepared: it learns of the commit when it is opened at `step`.
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
  // No server has any state: the job starts.
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
  // A server that is not open has lost its gradients; one at a larger attempt
  // took part in a round that began the step anew but did not finish.
  plan.redo = std::any_of(
      reports.begin(), reports.end(), [&reports](const ServerReport& report) {
        return report.takes_part &&
               (!report.active ||
                (report.committed_step == reports[0].committed_step &&
                 report.attempt > reports[0].attempt));
      });
  return plan;
}

uint64_t LastOpening(absl::Span<const ServerReport> reports) {
  if (reports[0].committed_step >= 0) return reports[0].opened_epoch;
  uint64_t newest = 0;
  for (const ServerReport& report : reports) {
    if (report.committed_step < 0) continue;
    newest = std::max(newest, report.opened_epoch);
  }
  return newest;
}

namespace {

// The reports, with those of mirrors without state in place of those that have
// missed the last opening: the others have gone on without them, so that a step
// which such a mirror has prepared, or even committed, may have been made again
// from other gradients. A mirror that has missed only rounds which did not
// complete keeps its committed step, since no step was committed since; what it
// has prepared may be of other gradients.
std::vector<ServerReport> WithoutTheLate(absl::Span<const ServerReport> reports,
                                         uint64_t opened_epoch) {
  const uint64_t newest = LastOpening(reports);
  const bool first_has_it = reports[0].committed_step >= 0;
  const uint64_t completed = first_has_it || opened_epoch == 0
                                 ? newest
                                 : std::min(newest, opened_epoch);
  std::vector<ServerReport> result(reports.begin(), reports.end());
  for (ServerReport& report : result) {
    if (report.committed_step < 0 || report.opened_epoch >= newest) continue;
    report.prepared_step = -1;
    if (report.opened_epoch >= completed) continue;
    report.active = false;
    report.committed_step = -1;
  }
  return result;
}

// The newest step that the job may have committed, as far as the servers know.
int64_t StepOfMirrors(absl::Span<const ServerReport> reports,
                      int64_t train_steps) {
  if (reports[0].committed_step >= 0) return reports[0].committed_step;
  int64_t step = -1;
  for (const ServerReport& report : reports) {
    step = std::max(step, report.committed_step);
  }
  const bool all_prepared = std::all_of(
      reports.begin(), reports.end(), [step](const ServerReport& report) {
        return report.committed_step < 0 ||
               (report.committed_step == step &&
                report.prepared_step == step + 1 && !report.settings.paused);
      });
  // Workers compute until they learn that training is over, so a step which the
  // chief never commits may be prepared.
  return all_prepared && step < train_steps ? step + 1 : step;
}

}  // namespace

RecoveryPlan MakeMirrorPlan(absl::Span<const ServerReport> found,
                            int64_t checkpoint_step, int64_t known_step,
                            int64_t train_steps, uint64_t opened_epoch) {
  const std::vector<ServerReport> reports = WithoutTheLate(found, opened_epoch);
  const int64_t step = StepOfMirrors(reports, train_steps);
  std::vector<ServerReport> mended = reports;
  std::vector<int> copies;
  std::string reason;
  int donor = -1;
  for (size_t server = 0; server < reports.size(); ++server) {
    if (!reports[server].takes_part) continue;
    const int index = static_cast<int>(server);
    // A server that has only prepared the step can be the donor: it learns of
    // the commit before its state is copied.
    std::string trouble = Trouble(reports[server], /*in_place=*/false, step);
    if (found[server].committed_step > reports[server].committed_step) {
      trouble = "was away while the others went on";
    }
    if (trouble.empty()) {
      // The donor is opened before the others, and ps 0 must be the last: its
      // epoch tells which mirrors have missed an opening.
      if (donor <= 0) donor = index;
      continue;
    }
    absl::StrAppend(&reason, reason.empty() ? "" : ", ", "ps ", index, " ",
                    trouble);
    copies.push_back(index);
    // With the copies all servers are at `step`, and the plain plan decides the
    // rest.
    mended[server].active = false;
    mended[server].committed_step = step;
    mended[server].prepared_step = -1;
  }
  // No server can lend the step, so the plain plan below sends all servers
  // back.
  if (donor < 0) copies.clear();
  RecoveryPlan plan =
      MakeRecoveryPlan(donor < 0 ? reports : mended, /*in_place=*/false,
                       checkpoint_step, known_step);
  plan.no_server_has_it = donor < 0;
  if (plan.action != RecoveryPlan::Action::kResume) return plan;
  plan.copies = std::move(copies);
  plan.reason = std::move(reason);
  plan.donor = donor;
  plan.step = step;
  return plan;
}

std::string TextOfCopies(const RecoveryPlan& plan) {
  return absl::StrCat(plan.reason, ": takes the state of step ", plan.step,
                      " from ps ", plan.donor, ", its mirror");
}

int64_t FirstAttempt(uint64_t epoch) {
  return static_cast<int64_t>(epoch) * kAttemptsOfAnEpoch + 1;
}

}  // namespace lockstep::chief
