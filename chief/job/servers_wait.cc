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
  if (failed_.empty()) failing_since_ = round_began_;
  longest_round_ = std::max(longest_round_, now - round_began_);
  failed_ = std::string(why.message());
}

absl::StatusOr<bool> ServersWait::Ready(const Absent& absent,
                                        const absl::Status& stop,
                                        absl::Time now, JobActions& out) {
  const std::vector<TaskId>& away = absent.servers;
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
  // server that the chief could not call for a moment answers within it. Or it
  // has died, and is away within it: an elastic job then gives it up.
  const absl::Duration in_vain =
      away.empty() ? now - failing_since_ - longest_round_ : waited;
  if (!stop.ok() && in_vain > job_.lease) {
    return absl::FailedPreconditionError(absl::StrCat(
        stop.message(), ", while ",
        away.empty()
            ? absl::StrCat("the servers cannot be brought together: ", failed_)
            : absl::StrCat(whom, " is away")));
  }
  Report(whom, TextOfEnd(absent, now), now, out);
  return away.empty();
}

std::string ServersWait::TextOfEnd(const Absent& absent, absl::Time now) const {
  const bool ends =
      !absent.servers.empty() &&
      absent.given_up_at < began_ + longest_round_ + job_.max_wait;
  if (!ends) return "";
  return absl::StrCat(
      ", and goes on without ", absent.servers.size() == 1 ? "it" : "them",
      " in ",
      DurationText(absl::Ceil(absent.given_up_at - now, absl::Seconds(1))));
}

void ServersWait::Report(const std::string& whom, const std::string& end,
                         absl::Time now, JobActions& out) {
  out.push_back(Waits{{{"the job", whom + end, began_}}});
  // A change of the missing servers is logged at once.
  if (whom == said_ && now - said_at_ <= kReportEvery) return;
  said_ = whom;
  said_at_ = now;
  const bool begins = now - began_ < kReportAfter;
  Warn(out, absl::StrCat("the job ",
                         begins ? "waits"
                                : absl::StrCat("has waited ",
                                               DurationText(now - began_)),
                         " for ", whom, end));
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
