#include "worker/loop/strict_pass.h"

namespace lockstep {

StrictPass::StrictPass(StepClient& client, const PassId& pass,
                       const Options& options)
    : client_(client),
      pass_(pass),
      everybody_counts_(options.selected_attempt > 0),
      watch_(options.watch),
      attempt_(options.selected_attempt) {
  client_.BeginPass(pass_,
                    options.selected_attempt == 1
                        ? StepClient::PassKind::kEverybodyCounts
                        : StepClient::PassKind::kSomeCount,
                    watch_);
}

PassHooks StrictPass::Hooks() {
  return {.on_gradient = [this](size_t variable) { OnGradient(variable); },
          .unwanted = [this] { return Unwanted(); }};
}

void StrictPass::OnGradient(size_t variable) {
  Decide();
  client_.GradientReady(variable);
}

bool StrictPass::Unwanted() {
  // A member's step is not over before its gradient is in.
  dropped_ = watch_ && attempt_ == 0 && client_.StepIsOver();
  return dropped_ || !status_.ok();
}

absl::Status StrictPass::Finish() {
  Decide();
  return status_;
}

void StrictPass::Decide() {
  if (decided_) return;
  decided_ = true;
  if (attempt_ == 0) {
    const absl::StatusOr<Announcement> answer = client_.Announce(pass_);
    status_ = answer.status();
    if (answer.ok() && answer->decision == Announcement::Decision::kSelected) {
      attempt_ = answer->attempt;
    }
  }
  if (attempt_ > 0) client_.BeginPush(pass_, attempt_);
}

}  // namespace lockstep
