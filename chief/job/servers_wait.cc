#include "chief/job/servers_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kReportAfter = absl::Seconds(5);
constexpr absl::Duration kReportEvery = absl::Seconds(10);

}  // namespace

void ServersWait::Begin(absl::Time now) {
  began_ = now;
  failed_.clear();
}

absl::StatusOr<bool> ServersWait::Ready(const std::vector<TaskId>& away,
                                        const absl::Status& stop,
                                        absl::Time now, JobActions& out) {
  const auto name = [](std::string* to, const TaskId& task) {
    absl::StrAppend(to, task.ToString(), " (gone)");
  };
  const std::string whom = !away.empty() ? absl::StrJoin(away, ", ", name)
                           : !failed_.empty()
                               ? absl::StrCat("the servers (", failed_, ")")
                               : "the servers";
  const absl::Duration waited = now - began_;
  if (waited >= job_.max_wait) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job waited longer than max_wait (",
                     absl::FormatDuration(job_.max_wait), ") for ", whom));
  }
  if (away.empty()) {
    if (!failed_.empty()) Report(whom, now, out);
    return true;
  }
  // A server that only missed some heartbeats is back within a lease.
  if (!stop.ok() && waited > job_.lease) {
    return absl::FailedPreconditionError(
        absl::StrCat(stop.message(), ", while ", whom, " is away"));
  }
  Report(whom, now, out);
  return false;
}

void ServersWait::Report(const std::string& whom, absl::Time now,
                         JobActions& out) {
  out.push_back(Waits{{{"the job", whom, began_}}});
  // A change of the missing servers is logged at once.
  if (whom == said_ && now - said_at_ <= kReportEvery) return;
  said_ = whom;
  said_at_ = now;
  const bool begins = now - began_ < kReportAfter;
  Warn(out, absl::StrCat("the job ",
                         begins ? "waits"
                                : absl::StrCat("has waited ",
                                               DurationText(now - began_)),
                         " for ", whom));
}

void ServersWait::ReportWork(const std::string& what, absl::Time now,
                             JobActions& out) {
  out.push_back(Waits{{{"the job", what, began_}}});
  if (now - std::max(began_, said_at_) <= kReportAfter) return;
  said_at_ = now;
  Info(out, absl::StrCat("the job has waited ", DurationText(now - began_),
                         " for ", what));
}

}  // namespace lockstep::chief
