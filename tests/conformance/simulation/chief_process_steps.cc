// The part of ChiefProcess that makes steps, as Chief::Train() does.

#include <utility>

#include "common/base/status_macros.h"
#include "tests/conformance/simulation/chief_process.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kReplacePause = absl::Seconds(1);

bool Passing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status ChiefProcess::Train() {
  LOCKSTEP_RETURN_IF_ERROR(NextStep());
  while (!(loop_->between_steps() && loop_->step() >= job_.options.steps)) {
    const absl::Time until =
        std::min(job_.world.Now() + kTick, retries_.next());
    const absl::Duration rest = until - job_.world.Now();
    if (events_.empty() && rest > absl::ZeroDuration()) {
      waiting_.UntilOrFor(rest, [this] { return !events_.empty(); });
    }
    if (!events_.empty()) {
      const auto [epoch, handler] = std::move(events_.front());
      events_.pop_front();
      if (epoch == group_.epoch()) LOCKSTEP_RETURN_IF_ERROR(handler());
    }
    AskAgain();
    if (job_.world.Now() - last_tick_ < kTick) continue;
    LOCKSTEP_RETURN_IF_ERROR(Tick());
    if (!server_away_) continue;
    LOCKSTEP_RETURN_IF_ERROR(Recover());
    LOCKSTEP_RETURN_IF_ERROR(NextStep());
  }
  return absl::OkStatus();
}

absl::Status ChiefProcess::NextStep() {
  const int64_t step = loop_->step();
  const bool due = policy_->Due(step, job_.world.Now());
  if (step > 0 && step >= granted_until_ && step < job_.options.steps && due &&
      !checkpoint_running_) {
    if (!StartCheckpoint().ok()) policy_->Failed(job_.world.Now());
  }
  if (step >= job_.options.steps) return absl::OkStatus();
  if (job_.num_servers() == 1 && !(step < granted_until_ && due)) {
    granted_until_ = std::min(
        {step + pace_.Ahead(), policy_->NextDueStep(step), job_.options.steps});
  }
  stalls_.Begin();
  contributors_.assign(job_.num_servers(), {});
  const SyncLoop::Actions actions = loop_->Begin();
  const absl::Duration pause = pace_.Pause(told_until_);
  if (job_.num_servers() == 1 && pause > absl::ZeroDuration()) {
    retries_.Postpone(0, job_.world.Now() + pause);
  } else {
    Ask(actions);
  }
  return absl::OkStatus();
}

void ChiefProcess::Post(uint64_t epoch, Handler handler) {
  events_.emplace_back(epoch, std::move(handler));
  waiting_.Wake();
}

void ChiefProcess::Ask(const SyncLoop::Actions& actions) {
  const uint64_t epoch = group_.epoch();
  const int64_t step = loop_->step();
  for (int server : actions.takes) {
    told_until_ = granted_until_;
    job_.world.Call<TakeReply>(
        number_, job_.server_place(server),
        [&job = job_, server, chief = calls_[0]->Self(), step,
         until = granted_until_,
         attempt = stalls_.attempt()](const World::Reply<TakeReply>& reply) {
          job.servers[server]->Take(chief, step, until, attempt, reply);
        },
        [this, epoch, server, step](const absl::StatusOr<TakeReply>& answer) {
          Post(epoch, [=, this] { return OnTake(server, step, answer); });
        });
  }
  if (!actions.commit.has_value()) return;
  const SyncLoop::CommitAction commit = *actions.commit;
  std::vector<std::vector<int>> told;
  for (const std::vector<int>& set : contributors_) {
    if (!set.empty()) told.push_back(set);
  }
  job_.world.Call<int64_t>(
      number_, job_.server_place(0),
      [&job = job_, chief = calls_[0]->Self(), commit,
       told](const World::Reply<int64_t>& reply) {
        reply(job.servers[0]->Commit(chief, commit.step, commit.attempt, told));
      },
      [this, epoch, commit](const absl::StatusOr<int64_t>& answer) {
        Post(epoch, [=, this] { return OnCommit(commit, answer); });
      });
}

void ChiefProcess::AskAgain() {
  for (int server : retries_.TakeDue(job_.world.Now())) {
    SyncLoop::Actions actions = loop_->OnTakeAgain(server, loop_->step());
    if (server == 0) actions.commit = std::exchange(commit_again_, {});
    Ask(actions);
  }
}

absl::Status ChiefProcess::OnTake(int server, int64_t step,
                                  const absl::StatusOr<TakeReply>& answer) {
  if (step != loop_->step()) return absl::OkStatus();
  if (!answer.ok()) {
    if (!Passing(answer.status())) return answer.status();
    retries_.Failed(server, job_.world.Now());
    return absl::OkStatus();
  }
  retries_.Answered(server);
  Hear(server, *answer);
  if (answer->committed_step > step) {
    loop_->OnCommittedByServer(answer->committed_step);
    pace_.Stepped(loop_->step(), job_.world.Now());
    return NextStep();
  }
  if (answer->prepared) contributors_[server] = answer->contributors;
  Ask(answer->prepared ? loop_->OnPrepared(server, step, answer->attempt)
                       : loop_->OnTakeAgain(server, step));
  return absl::OkStatus();
}

absl::Status ChiefProcess::OnCommit(const SyncLoop::CommitAction& commit,
                                    const absl::StatusOr<int64_t>& answer) {
  if (answer.ok() && *answer > 0) {
    retries_.Answered(0);
    contributors_.assign(job_.num_servers(), {});
    stalls_.OnSet(*answer, {}, job_.world.Now());
    Ask(loop_->OnCommitRefused());
    return absl::OkStatus();
  }
  if (answer.ok()) {
    retries_.Answered(0);
    loop_->OnCommitted(commit.step);
    committed_attempt_ = commit.attempt;
    return NextStep();
  }
  if (absl::IsFailedPrecondition(answer.status())) {
    retries_.Answered(0);
    Ask(loop_->OnCommitRefused());
    return absl::OkStatus();
  }
  if (!Passing(answer.status())) return answer.status();
  commit_again_ = commit;
  retries_.Failed(0, job_.world.Now());
  return absl::OkStatus();
}

void ChiefProcess::Hear(int server, const TakeReply& reply) {
  if (reply.attempt == 0) return;
  const absl::Time now = job_.world.Now();
  if (server == 0) stalls_.OnSet(reply.attempt, reply.members, now);
  if (reply.prepared) {
    stalls_.OnPrepared(server);
    return;
  }
  stalls_.OnArrivals(server, reply.attempt,
                     {reply.arrivals.open_parts, reply.arrivals.parts}, now);
}

void ChiefProcess::HearOfAttempt(int64_t step, int64_t attempt) {
  if (!loop_.has_value() || step != loop_->step()) return;
  stalls_.OnSet(attempt, {}, job_.world.Now());
  Ask(loop_->OnAttempt(attempt));
}

absl::Status ChiefProcess::Tick() {
  const absl::Time now = job_.world.Now();
  if (now - std::exchange(last_tick_, now) > job_.config.lease / 2) {
    members_.RenewAll(now);
  }
  if (now - opened_ > job_.config.lease) members_.GiveUpPredecessors();
  for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
    LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
  }
  ReplaceStalled();
  return absl::OkStatus();
}

absl::Status ChiefProcess::Bury(const MembershipTable::Dead& dead) {
  job_.Trace([&] {
    return absl::StrCat(dead.task.ToString(), " of incarnation ",
                        dead.incarnation, " is gone: ", dead.reason);
  });
  if (dead.task.type != TaskType::kWorker) {
    members_.Buried(dead.task, dead.incarnation);
    server_away_ |= dead.task.type == TaskType::kPs;
    return absl::OkStatus();
  }
  const int worker = dead.task.index;
  if (burials_.Pauses(worker, job_.world.Now())) return absl::OkStatus();
  const auto expired =
      group_.ExpireWorker(worker, dead.incarnation, dead.reason);
  if (absl::IsAborted(expired.status())) return expired.status();  // replaced
  if (!expired.ok()) {
    burials_.Failed(worker, job_.world.Now());
    return absl::OkStatus();
  }
  burials_.Answered(worker);
  HearOfAttempt(expired->step, expired->attempt);
  members_.Buried(dead.task, dead.incarnation);
  return absl::OkStatus();
}

void ChiefProcess::ReplaceStalled() {
  const absl::Time now = job_.world.Now();
  if (job_.options.total_num_replicas <= job_.options.replicas_to_aggregate ||
      now < replace_again_) {
    return;
  }
  const auto worker = stalls_.Find(now, job_.config.stall_timeout);
  if (!worker.has_value()) return;
  replace_again_ = now + kReplacePause;
  const auto replaced = group_.ReplaceMember(*worker, loop_->step(),
                                             stalls_.attempt(), "stalled");
  if (replaced.ok()) HearOfAttempt(replaced->step, replaced->attempt);
}

std::string ChiefProcess::WaitsFor() const {
  std::string text =
      absl::StrCat("at step ", loop_.has_value() ? loop_->step() : -1,
                   has_plan_ ? "" : ", not open");
  for (const MembershipTable::Member& member : members_.Members()) {
    if (member.state == MembershipTable::State::kAlive) continue;
    absl::StrAppend(&text, ", ", member.task.ToString(), " is away");
  }
  for (const ServerProcess* server : job_.servers) {
    if (server != nullptr) absl::StrAppend(&text, ", ", server->WaitsFor());
  }
  return text;
}

}  // namespace lockstep::simulation
