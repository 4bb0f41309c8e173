#include "chief/steps/stall_replacement.h"

#include "absl/strings/str_cat.h"
#include "chief/events/call_errors.h"

namespace lockstep::chief {

void StallReplacement::Begin(const StallWatch::Found& stalled, int64_t step,
                             int64_t attempt, const std::string& reason,
                             int64_t round, absl::Time now, JobActions& out) {
  // Whatever the answer: the state of the step must change before another try,
  // but a backup that comes a moment later must not wait long for a dead
  // worker.
  again_after_failure_ = now + kPause;
  again_ = now + (stalled.lost ? kPauseAfterLost : kPause);
  open_ = Open{{round, 0, stalled.worker, step, attempt, reason}};
  out.push_back(open_->asked);
}

std::optional<ShardCalls::Replaced> StallReplacement::OnAnswer(
    const ReplaceAnswered& event, JobActions& out) {
  if (!open_.has_value() || open_->asked.round != event.round) return {};
  std::optional<ShardCalls::Replaced> decided;
  open_->failure.Update(OfServer(event.server, event.answer.status()));
  --open_->unanswered;
  // ps 0 alone knows the workers that wait, so it decides; the others follow.
  if (event.server == 0 && event.answer.ok()) {
    decided = open_->replaced = *event.answer;
    // If it names no worker, no backup waits yet and nothing has changed.
    open_->unanswered = decided->by.has_value() ? num_servers_ - 1 : 0;
    for (int server = 1; server <= open_->unanswered; ++server) {
      out.push_back(Replace{event.round, server, open_->asked.worker,
                            decided->step, decided->attempt,
                            open_->asked.reason});
    }
  }
  if (open_->unanswered == 0) {
    Ended(out);
    open_.reset();
  }
  return decided;
}

void StallReplacement::Ended(JobActions& out) {
  const std::string who = absl::StrCat(
      "worker ", open_->asked.worker, " holds up step ", open_->asked.step + 1);
  if (!open_->failure.ok()) {
    again_ = again_after_failure_;
    Warn(out,
         absl::StrCat(who, ": ", open_->failure.message(), "; trying again"));
  } else if (open_->replaced.by.has_value()) {
    Warn(out, absl::StrCat(who, " (", open_->asked.reason, "); worker ",
                           *open_->replaced.by, " has its place"));
  }
}

}  // namespace lockstep::chief
