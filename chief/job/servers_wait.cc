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
  began_ = round_began_ = now;
  longest_round_ = absl::ZeroDuration();
  failed_.clear();
}

void ServersWait::RoundFailed(const absl::Status& why, absl::Time now) {
  longest_round_ = std::max(longest_round_, now - round_began_);
  failed_ = std::string(why.message());
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
  // A round may restore variables for longer than max_wait before a server
  // fails it, which may be back soon. Only one round is left out: those of a
  // server that hangs are long, too.
  const absl::Duration waited = now - began_ - longest_round_;
  if (waited >= job_.max_wait) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job waited longer than max_wait (",
                     absl::FormatDuration(job_.max_wait), ") for ", whom));
  }
  if (away.empty()) round_began_ = now;
  if (away.empty() && failed_.empty()) return true;
  // A server that only missed some heartbeats is back within a lease, and a
  // server that the chief could not call for a moment answers within it.
  if (!stop.ok() && waited > job_.lease) {
    return absl::FailedPreconditionError(absl::StrCat(
        stop.message(), ", while ",
        away.empty()
            ? absl::StrCat("the servers cannot be brought together: ", failed_)
            : absl::StrCat(whom, " is away")));
  }
  Report(whom, now, out);
  return away.empty();
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
