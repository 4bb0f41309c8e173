#include "chief/job/gathering.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {
namespace {

// The time for which a member may be missing before the log says so, and
// between lines.
constexpr absl::Duration kReportAfter = absl::Seconds(5);

// A program of the user's that has the wrong address, or no certificates, never
// registers, and nothing else shows that.
bool HasWorker(const MembershipTable& members) {
  const std::vector<MembershipTable::Member> all = members.Members();
  return std::any_of(all.begin(), all.end(),
                     [](const MembershipTable::Member& member) {
                       return member.task.type == TaskType::kWorker &&
                              member.state == MembershipTable::State::kAlive;
                     });
}

}  // namespace

Gathering::Turn Gathering::Look() {
  const absl::Time now = context_.now;
  const auto name = [](std::string* to, const TaskId& task) {
    absl::StrAppend(to, task.ToString());
  };
  std::string missing =
      absl::StrJoin(context_.servers.AwayAtFirst(began_, now), ", ", name);
  if (!has_model_) {
    absl::StrAppend(&missing, missing.empty() ? "" : ", ",
                    HasWorker(context_.members)
                        ? "a worker that describes the model"
                        : "a worker that registers and describes the model");
  }
  if (missing.empty()) return Turn::kAllThere;
  context_.out.push_back(Waits{{{"chief", missing, began_}}});
  if (now - std::max(began_, said_) > kReportAfter) {
    said_ = now;
    Info(context_.out,
         absl::StrCat("the chief has waited ", DurationText(now - began_),
                      " for ", missing));
  }
  for (const MembershipTable::Dead& dead : context_.members.TakeDead(now)) {
    // A worker that cannot take part in this job never will, so the job ends.
    // Without its evaluator the job goes on.
    if (dead.task.type == TaskType::kWorker &&
        dead.leave == LeaveCause::kCannotTakePart) {
      return End(absl::AbortedError(
          absl::StrCat(dead.task.ToString(), " ", dead.reason)));
    }
    // Stays unburied: the servers must learn of it once they are open.
    if (dead.leave == LeaveCause::kEndOfInput) continue;
    context_.members.Buried(dead.task, dead.incarnation);  // holds nothing yet
  }
  if (context_.stop.has_value()) return End(*context_.stop);
  return Turn::kWaits;
}

void Gathering::LookForEnd(absl::Time since) {
  // Not at each tick: a look lists a directory, which may be on a slow volume.
  const absl::Time due = std::max(since + kAfterTheEnd, looked_ + kLookEvery);
  if (context_.now <= due) return;
  looked_ = context_.now;
  context_.out.push_back(chief::LookForEnd{});
}

}  // namespace lockstep::chief
