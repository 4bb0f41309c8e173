#include "chief/job/checkpoint_driver.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

void CheckpointDriver::Begin(int64_t last_step, int64_t saved_step,
                             absl::Time now) {
  saved_step_ = saved_step;
  policy_.emplace(job_.checkpoint, last_step, now);
}

void CheckpointDriver::MaybeStart(int64_t step, int64_t attempt, absl::Time now,
                                  JobActions& out) {
  const bool due = policy_->Due(step, now);
  if (!wanted_ && !due) return;
  if (due) policy_->Tried(now);
  if (busy()) {
    // A wanted checkpoint stays wanted and begins later; a due one is skipped.
    if (due) {
      Warn(out,
           absl::StrCat("step ", step,
                        ": no checkpoint, the one before is being written"));
    }
    return;
  }
  const bool wanted = std::exchange(wanted_, false);
  // The step is saved already.
  if (wanted && saved_step_ == step) return;
  Start(step, attempt, out);
}

void CheckpointDriver::Start(int64_t step, int64_t attempt, JobActions& out) {
  phase_ = Phase::kCopying;
  out.push_back(BeginSnapshot{step, attempt});
}

void CheckpointDriver::OnBegun(const SnapshotBegun& event, bool quiet,
                               absl::Time now, JobActions& out) {
  phase_ = event.status.ok() ? Phase::kWriting : Phase::kIdle;
  last_result_ = event.status;
  if (!event.status.ok() && !quiet) Failed(event.step, event.status, now, out);
}

void CheckpointDriver::OnDone(const SnapshotDone& event, absl::Time now,
                              JobActions& out) {
  phase_ = Phase::kIdle;
  last_result_ = event.status;
  if (!event.status.ok()) return Failed(event.step, event.status, now, out);
  saved_step_ = event.step;
  policy_->Saved(event.step, now);
  out.push_back(CheckpointSaved{event.step});
  Info(out, absl::StrCat("checkpoint of step ", event.step, " in ",
                         job_.checkpoint.directory));
  if (const auto over = trouble_.Saved(event.step)) Notify(out, *over);
}

void CheckpointDriver::Failed(int64_t step, const absl::Status& status,
                              absl::Time now, JobActions& out) {
  const std::string why(status.message());
  Error(out, absl::StrCat("the checkpoint of step ", step,
                          " failed, the one before stays: ", why));
  policy_->Failed(step, now);
  out.push_back(CheckpointTroubled{absl::StrCat("step ", step, ": ", why)});
  if (const auto line = trouble_.Failed(step, status, now)) {
    out.push_back(Noticed{*line});
  }
}

}  // namespace lockstep::chief
