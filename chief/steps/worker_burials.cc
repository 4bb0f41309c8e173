#include "chief/steps/worker_burials.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/events/call_errors.h"

namespace lockstep::chief {

void WorkerBurials::Begin(const MembershipTable::Dead& dead, int64_t round,
                          absl::Time now, JobActions& out) {
  const int worker = dead.task.index;
  // TakeDead() returns a worker again until it is buried.
  if (open_.count(worker) > 0 || pauses_.Pauses(worker, now)) return;
  open_[worker] = {dead, round};
  Expire expire{round, 0, worker, dead.incarnation, dead.reason};
  expire.input_ended = dead.leave == LeaveCause::kEndOfInput;
  out.push_back(std::move(expire));
}

absl::StatusOr<WorkerBurials::Heard> WorkerBurials::OnAnswer(
    const ExpireAnswered& event, const std::vector<int>& servers,
    absl::Time now, JobActions& out) {
  Heard heard;
  const auto found = open_.find(event.worker);
  // A round has made the burial void in between.
  if (found == open_.end() || found->second.round != event.round) return heard;
  Open& open = found->second;
  const absl::Status status = OfServer(event.server, event.answer.status());
  if (absl::IsAborted(status)) return status;
  open.failure.Update(status);
  --open.unanswered;
  if (event.server == 0 && event.answer.ok()) {
    // The others get the step, the attempt and the incarnation that ps 0 has
    // decided.
    heard.decided = open.held = *event.answer;
    open.unanswered = static_cast<int>(servers.size()) - 1;
    for (const int server : servers) {
      if (server == 0) continue;
      out.push_back(Expire{event.round, server, event.worker,
                           open.held.incarnation, open.dead.reason,
                           open.held.step, open.held.attempt,
                           open.dead.leave == LeaveCause::kEndOfInput});
    }
  }
  if (open.unanswered > 0) return heard;
  Ended(open, now, heard, out);
  open_.erase(found);
  return heard;
}

void WorkerBurials::Ended(const Open& open, absl::Time now, Heard& heard,
                          JobActions& out) {
  const int worker = open.dead.task.index;
  if (open.failure.ok()) {
    pauses_.Answered(worker);
    heard.buried = open.dead;
    heard.held = open.held;
    return;
  }
  pauses_.Failed(worker, now);
  Warn(out, absl::StrCat(open.dead.task.ToString(), ": ",
                         open.failure.message(), "; trying again"));
}

}  // namespace lockstep::chief
