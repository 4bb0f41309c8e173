#include "worker/loop/strict_pass.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

StepClient::PassKind KindOf(const StrictPass::Options& options) {
  if (options.shared) return StepClient::PassKind::kShared;
  // A token that selects for a later attempt follows a change of the set, whose
  // members need not be all workers.
  return options.selected_attempt == 1 ? StepClient::PassKind::kAllCount
                                       : StepClient::PassKind::kSomeCount;
}

}  // namespace

StrictPass::StrictPass(StepClient& client, const PassId& pass,
                       const Options& options)
    : client_(client),
      pass_(pass),
      all_workers_count_(options.selected_attempt > 0),
      watch_(options.watch),
      clipper_(options.clipper),
      meter_(options.meter),
      attempt_(options.selected_attempt) {
  if (clipper_ != nullptr) clipper_->BeginPass();
  client_.BeginPass(pass_, KindOf(options), watch_);
}

void StrictPass::GradientReady(size_t variable) {
  // Without clipping a gradient leaves while the rest of the pass computes; a
  // global norm holds all back to the end.
  if (clipper_ == nullptr) return Send(variable, /*absent=*/false);
  clipper_->Ready(
      variable, [this](size_t clipped, bool absent) { Send(clipped, absent); });
}

// Through the clipper, too: what it keeps back must not be overtaken, or
// workers with other absent variables would send in another order.
void StrictPass::GradientAbsent(size_t variable) {
  if (clipper_ == nullptr) return Send(variable, /*absent=*/true);
  clipper_->Absent(
      variable, [this](size_t clipped, bool absent) { Send(clipped, absent); });
}

void StrictPass::Send(size_t variable, bool absent) {
  // The mark must reach the client before its GradientReady().
  if (absent) client_.GradientAbsent(variable);
  Decide();
  client_.GradientReady(variable);
}

absl::Status StrictPass::CheckWanted() {
  // A member's step is not over before its gradient is in.
  dropped_ = dropped_ || (watch_ && attempt_ == 0 && client_.StepIsOver());
  if (!dropped_ && status_.ok()) return absl::OkStatus();
  return absl::AbortedError("the rest of the pass is not wanted");
}

absl::Status StrictPass::PullAgain(StepClient::PulledAgain what) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t pulled,
                            client_.PullAgain(pass_.step, what));
  if (pulled == pass_.step) return absl::OkStatus();
  dropped_ = true;
  return absl::AbortedError("the step is over");
}

absl::Status StrictPass::Finish() {
  if (clipper_ != nullptr) {
    clipper_->EndPass(
        [this](size_t clipped, bool absent) { Send(clipped, absent); });
  }
  Decide();
  return status_;
}

void StrictPass::Decide() {
  // Once per pass, with its first gradient: the later a worker announces, the
  // more likely it is that a backup has computed in vain.
  if (decided_) return;
  decided_ = true;
  if (attempt_ == 0) {
    if (meter_ != nullptr) meter_->Begin(SpanKind::kAnnounce, pass_.step);
    const absl::StatusOr<Announcement> answer = client_.Announce(pass_);
    if (meter_ != nullptr) meter_->Begin(SpanKind::kBackward, pass_.step);
    // An error ends the pass at the next CheckWanted(), between two layers:
    // GradientReady() cannot return it.
    status_ = answer.status();
    if (answer.ok() && answer->decision == Announcement::Decision::kSelected) {
      attempt_ = answer->attempt;
    }
  }
  if (attempt_ > 0) client_.BeginPush(pass_, attempt_);
}

}  // namespace lockstep::worker
