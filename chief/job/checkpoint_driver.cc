#include "chief/job/checkpoint_driver.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {
namespace {

// The time between two lines of the log about the wait for a checkpoint.
constexpr absl::Duration kReportEvery = absl::Seconds(10);

}  // namespace

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
  step_ = step;
  out.push_back(BeginSnapshot{step, attempt});
}

void CheckpointDriver::OnBegun(const SnapshotBegun& event, bool quiet,
                               absl::Time now, JobActions& out) {
  phase_ = event.status.ok() ? Phase::kWriting : Phase::kIdle;
  writes_since_ = now;
  last_result_ = event.status;
  if (!last_result_.ok() && !quiet) Failed(event.step, last_result_, now, out);
}

void CheckpointDriver::OnDone(const SnapshotDone& event, absl::Time now,
                              JobActions& out) {
  phase_ = Phase::kIdle;
  last_result_ = event.status;
  if (!last_result_.ok()) return Failed(event.step, last_result_, now, out);
  policy_->Saved(event.step, now);
  Saved(event.step, out);
}

void CheckpointDriver::Saved(int64_t step, JobActions& out) {
  saved_step_ = step;
  out.push_back(CheckpointSaved{step});
  Info(out, absl::StrCat("checkpoint of step ", step, " in ",
                         job_.checkpoint.directory));
  if (const auto over = trouble_.Saved(step)) Notify(out, *over);
}

absl::Status CheckpointDriver::CheckNotOverdue(absl::Time now) const {
  if (!IsOverdue(now)) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "the checkpoint of step ", step_, " takes longer than max_wait (",
      absl::FormatDuration(job_.max_wait), "); check its volume"));
}

void CheckpointDriver::ReportWait(const std::string& who, absl::Time since,
                                  absl::Time now, JobActions& out) {
  const std::string what =
      absl::StrCat("the checkpoint of step ", step_, " to be written");
  out.push_back(Waits{{{who, what, since}}});
  if (now - std::max(since, said_at_) <= kReportEvery) return;
  said_at_ = now;
  Info(out, absl::StrCat(who, " has waited ", DurationText(now - since),
                         " for ", what));
}

void CheckpointDriver::Failed(int64_t step, const absl::Status& status,
                              absl::Time now, JobActions& out) {
  const std::string why(status.message());
  Error(out, absl::StrCat("the checkpoint of step ", step, " failed, ",
                          saved_step_ < 0 ? "and there is none before it: "
                                          : "the one before stays: ",
                          why));
  policy_->Failed(step, now);
  out.push_back(CheckpointTroubled{absl::StrCat("step ", step, ": ", why)});
  if (const auto line = trouble_.Failed(step, status, now)) {
    out.push_back(Noticed{*line});
  }
}

}  // namespace lockstep::chief
