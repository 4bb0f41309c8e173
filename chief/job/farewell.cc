#include "chief/job/farewell.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

void Farewell::Begin(const absl::Status& ended, const std::string& why_done) {
  ended_ = ended;
  why_done_ = why_done;
  began_ = context_.now;
  // Servers hold the settings, which name the workers of an elastic job: a
  // chief that has not opened the servers does not know all workers that wait.
  context_.members.TakeOverAllWorkers();
}

bool Farewell::AwaitsCheckpoint() const {
  if (!checkpoints_.busy()) return false;
  const bool failed = !ended_.ok() && !absl::IsCancelled(ended_);
  return !failed || !checkpoints_.IsOverdue(context_.now);
}

bool Farewell::GoOn() {
  if (!told_.has_value()) {
    if (AwaitsCheckpoint()) {
      checkpoints_.ReportWait("the end", began_, context_.now, context_.out);
      return false;
    }
    Tell();
    told_ = context_.now;
  }
  if (!left_.has_value()) {
    // A dead process must be buried before its successor can register and learn
    // of the end.
    for (const auto& dead : context_.members.TakeDead(context_.now)) {
      context_.members.Buried(dead.task, dead.incarnation);
    }
    if (AwaitsLeaves()) return false;
    left_ = context_.now;
  }
  return context_.now - *left_ >= kLinger;
}

void Farewell::Tell() {
  const std::string reason(ended_.message());
  context_.out.push_back(Waits{});
  context_.out.push_back(SumUp{});
  if (ended_.ok()) {
    context_.out.push_back(StateReached{JobState::kDone, why_done_});
    Info(context_.out, absl::StrCat("done at step ", context_.reached));
  } else if (absl::IsCancelled(ended_)) {
    context_.out.push_back(
        StateReached{JobState::kStopped, reason, IsHeld(ended_)});
    Warn(context_.out, absl::StrCat("stopped: ", reason));
  } else {
    context_.out.push_back(StateReached{JobState::kFailed, reason});
    Error(context_.out, absl::StrCat("the job failed: ", reason));
  }
}

// How long a worker that is no member now may still join to learn of the end.
absl::Duration Farewell::JoinGrace(
    const std::vector<MembershipTable::Member>& members) const {
  const absl::Duration beat = context_.job.heartbeat_interval;
  const bool heard_of_one =
      std::any_of(members.begin(), members.end(), [](const auto& member) {
        return member.task.type == TaskType::kWorker &&
               member.state != MembershipTable::State::kMissing;
      });
  if (heard_of_one || context_.members.AwaitsWorkers()) {
    return context_.job.lease + beat;
  }
  // This chief has just started, and then some heartbeats are enough; or no
  // worker has ever come: one whose program cannot start never does.
  return std::max(kFirstBeats * beat, kFirstContact);
}

bool Farewell::AwaitsLeaves() const {
  using State = MembershipTable::State;
  const absl::Duration waited = context_.now - *told_;
  if (waited >= kLeaveGrace) return false;
  // A worker that was declared dead by mistake is about to join again, and a
  // chief that has just started has not heard from all members yet.
  const auto members = context_.members.Members();
  const bool may_join = waited < JoinGrace(members);
  if (may_join && context_.members.AwaitsWorkers()) return true;
  return std::any_of(members.begin(), members.end(), [&](const auto& member) {
    return member.state == State::kAlive ||
           (member.state == State::kDead && member.task.type == TaskType::kPs &&
            context_.servers.TakesPart(member.task.index)) ||
           (may_join && member.task.type == TaskType::kWorker &&
            member.state != State::kLeft);
  });
}

}  // namespace lockstep::chief
