#include "common/membership/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/stop_status.h"
#include "common/text/duration_text.h"
#include "common/wire/incarnation_bounds.h"

namespace lockstep {
namespace {

// Messages round silence down to this.
constexpr absl::Duration kSilenceUnit = absl::Milliseconds(100);

}  // namespace

Membership::Membership(Options options) : options_(std::move(options)) {}

bool Membership::MayPass(const absl::Status& status) {
  // A chief that shuts down cancels the calls that have not ended.
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

void Membership::BeginRegistration(absl::Time now) {
  job_id_.clear();
  ended_ = false;
  lease_lost_ = false;
  began_ = now;
}

Membership::Next Membership::OnRegisterAnswer(const absl::Status& status,
                                              uint64_t newest, absl::Time now) {
  if (status.ok()) return Next::kMember;
  OnNewerIncarnation(newest);
  // A newer incarnation may be the echo of a clock that was ahead: a number
  // above it may be let in.
  if (newest == 0 && !MayPass(status)) return Next::kRefused;
  // The limit is the job's max_wait for a task that was a member, otherwise
  // chief_wait.
  if (now - began_ >= registration_limit()) {
    return Next::kWaitedTooLong;
  }
  return newest > 0 ? Next::kTryWithNewer : Next::kTryAgain;
}

void Membership::BeginHeartbeats(const std::string& job_id,
                                 absl::Duration max_wait, absl::Time now) {
  job_id_ = job_id;
  // From now on the job's max_wait limits waits, also across registrations.
  was_member_ = true;
  max_wait_ = max_wait;
  last_answer_ = now;
}

void Membership::OnHeartbeat(const Answer& answer, absl::Time now) {
  last_answer_ = now;
  job_is_training_ = answer.job == Answer::Job::kTrains;
  state_saved_ = answer.state_saved;
  switch (answer.job) {
    case Answer::Job::kDone:
      return End(absl::OkStatus());
    case Answer::Job::kStopped:
      return End(StoppedStatus(answer.reason, answer.hold));
    case Answer::Job::kFailed:
      return End(absl::AbortedError(answer.reason));
    case Answer::Job::kWaits:
    case Answer::Job::kTrains:
      return;
  }
}

void Membership::OnFailedHeartbeat(const absl::Status& status, absl::Time now) {
  if (!MayPass(status)) {
    // A replaced process must not come back, so its error keeps the code.
    // kAborted: only the lease has expired.
    const bool replaced = absl::IsAlreadyExists(status);
    return End(replaced ? status : absl::UnavailableError(status.message()),
               absl::IsAborted(status));
  }
  // The error may pass: a restarted chief answers again.
  if (now - last_answer_ < max_wait_) return;
  End(absl::UnavailableError(
      absl::StrCat("the chief at ", options_.chief, " is gone: no answer for ",
                   DurationText(now - last_answer_, kSilenceUnit))));
}

std::optional<absl::Duration> Membership::SilenceToReport(absl::Time now) {
  const absl::Duration silence = now - last_answer_;
  if (silence <= kSilent || now - reported_ <= kReportEvery) {
    return std::nullopt;
  }
  reported_ = now;
  return absl::Trunc(silence, kSilenceUnit);
}

Membership::AfterLeave Membership::OnLeaveAnswer(const absl::Status& status,
                                                 LeaveCause cause) {
  // A chief that misses any other leave notices the missing heartbeats.
  if (cause != LeaveCause::kEndOfInput || ended_) return AfterLeave::kGone;
  OnRefusal(status);
  return MayPass(status) ? AfterLeave::kTryAgain : AfterLeave::kGone;
}

void Membership::OnRefusal(const absl::Status& status) {
  // kAborted: the chief does not know this incarnation any more. The process
  // must register again.
  if (!absl::IsAborted(status)) return;
  End(absl::UnavailableError(status.message()), /*lease_lost=*/true);
}

void Membership::OnNewerIncarnation(uint64_t newest) {
  // A larger number comes from a broken or hostile peer, and would exclude this
  // task for ever.
  if (newest < kLargestIncarnation)
    newest_known_ = std::max(newest_known_, newest);
}

void Membership::End(const absl::Status& status, bool lease_lost) {
  ended_ = true;
  end_ = status;
  lease_lost_ = lease_lost;
}

}  // namespace lockstep
