#include "chief/steps/step_driver.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/events/call_errors.h"
#include "common/base/passing_error.h"
#include "common/text/figure_text.h"

namespace lockstep::chief {
namespace {

// The most workers that a wait names. Each server's wait has the text, and the
// answer to every heartbeat is made from a copy of all waits: with a thousand
// workers, their names would keep the chief busy.
constexpr size_t kMostNamed = 20;

// What a worker does, in its own words. Empty: it has just joined, and has said
// nothing yet. Two heartbeats that are missing make these words old.
std::string Doing(const MembershipTable::Member& member,
                  absl::Duration heartbeat_interval, absl::Time now) {
  const absl::Duration unheard = now - member.last_heartbeat;
  if (member.last_heartbeat == absl::InfinitePast() ||
      unheard <= 3 * heartbeat_interval) {
    return member.progress.activity;
  }
  return absl::StrCat("not heard for ", FormatAge(unheard));
}

}  // namespace

StepDriver::StepDriver(const JobConfig& job, int num_servers)
    : job_(job),
      num_servers_(num_servers),
      servers_(num_servers),
      newest_take_(num_servers),
      retries_(num_servers),
      server_waits_(num_servers),
      contributors_(num_servers),
      stalls_(num_servers, job.replicas_to_aggregate) {
  std::iota(servers_.begin(), servers_.end(), 0);
}

void StepDriver::Open(int64_t step, int replicas_to_aggregate,
                      const std::vector<int>& servers) {
  servers_ = servers;
  // Answers to calls of earlier rounds are recognized by this number and
  // dropped.
  ++round_;
  retries_ = Backoff(num_servers_);
  commit_again_.reset();
  granted_until_ = told_until_ = step;
  // 0 accepts a snapshot of any attempt: this chief has not seen which one was
  // committed.
  committed_attempt_ = 0;
  stalls_.SetSize(replicas_to_aggregate);
  loop_.emplace(servers_, step);
}

void StepDriver::GoBack(int64_t step) { loop_.emplace(servers_, step); }

void StepDriver::Begin(bool pauses, int64_t next_due, absl::Time now,
                       JobActions& out) {
  // One server can commit by itself: with several, only the chief knows that
  // all are prepared.
  const bool alone = servers_.size() == 1;
  if (alone && job_.mode == SyncMode::kStrict && !waits_for_norm_ &&
      !(pauses && !MayStandStill())) {
    granted_until_ =
        std::min({step() + pace_.Ahead(), next_due, job_.train_steps});
  }
  began_ = now;
  server_waits_.assign(num_servers_, "");
  for (const int server : servers_) server_waits_[server] = "its update";
  contributors_.assign(num_servers_, {});
  announced_.clear();
  stalls_.Begin();
  const SyncLoop::Actions actions = loop_->Begin();
  const absl::Duration pause = pace_.Pause(told_until_);
  // Only a server that is alone continues by itself meanwhile.
  if (alone && pause > absl::ZeroDuration()) {
    retries_.Postpone(0, now + pause);
  } else {
    Ask(actions, out);
  }
}

void StepDriver::Ask(const SyncLoop::Actions& actions, JobActions& out) {
  for (const int server : actions.takes) {
    told_until_ = granted_until_;
    newest_take_[server] = ++takes_;
    out.push_back(Take{round_, server, step(), granted_until_,
                       stalls_.attempt(), loop_->norm(), takes_});
  }
  if (actions.commit.has_value()) {
    out.push_back(Commit{round_, actions.commit->step, actions.commit->attempt,
                         contributors_});
  }
}

void StepDriver::AskAgain(absl::Time now, JobActions& out) {
  for (const int server : retries_.TakeDue(now)) {
    SyncLoop::Actions actions = loop_->OnTakeAgain(server, step());
    // The answer to the commit was lost: the commit is repeated in place of the
    // take, for whose answer the loop does not wait while it commits.
    if (server == 0) actions.commit = std::exchange(commit_again_, {});
    Ask(actions, out);
  }
}

void StepDriver::Hear(const TakeAnswered& event, absl::Time now) {
  const TakeResult& answer = event.answer;
  if (answer.prepared || event.call == newest_take_[event.server]) {
    server_waits_[event.server] =
        answer.prepared ? std::string() : answer.waits_for;
  }
  if (answer.attempt == 0) return;  // the answer has no progress
  if (event.server == 0) {
    announced_ = answer.announced_workers;
    stalls_.OnSet(answer.attempt, announced_, now);
  }
  if (answer.prepared || answer.squares.has_value()) {
    stalls_.OnPrepared(event.server);
    return;
  }
  stalls_.OnArrivals(event.server, answer.attempt,
                     {answer.open_parts, answer.pushed, answer.lost_workers},
                     now);
}

absl::StatusOr<StepDriver::Heard> StepDriver::OnTake(const TakeAnswered& event,
                                                     absl::Time now,
                                                     JobActions& out) {
  // A late answer: of an earlier round, or of a step that is over.
  if (event.round != round_ || event.step != step()) return Heard::kNothing;
  // A server ends its older take when a newer one arrives. If both were made
  // again, each would end the other one for ever.
  const bool repeats = event.call == newest_take_[event.server];
  if (IsPassing(event.status)) {
    if (!repeats) return Heard::kNothing;
    server_waits_[event.server] =
        absl::StrCat("an answer (", event.status.message(), ")");
    retries_.Failed(event.server, now);
    return Heard::kNothing;
  }
  if (!event.status.ok()) return OfServer(event.server, event.status);
  // Otherwise the call to be repeated is another one: a newer take, or the
  // commit of ps 0.
  if (repeats && !(event.server == 0 && commit_again_.has_value())) {
    retries_.Answered(event.server);
  }
  Hear(event, now);
  // The server has committed granted steps by itself.
  if (event.answer.committed_step > event.step) {
    loop_->OnCommittedByServer(event.answer.committed_step);
    pace_.Stepped(step(), now);
    return Heard::kStepped;
  }
  if (event.answer.prepared) {
    contributors_[event.server] = event.answer.contributors;
    Ask(loop_->OnPrepared(event.server, event.step, event.answer.attempt,
                          event.answer.squares),
        out);
  } else if (event.answer.squares.has_value()) {
    // Such servers need the chief in every step, so they get no grants.
    waits_for_norm_ = true;
    contributors_[event.server] = event.answer.contributors;
    Ask(loop_->OnMeasured(event.server, event.step, event.answer.attempt,
                          *event.answer.squares),
        out);
  } else if (repeats) {
    Ask(loop_->OnTakeAgain(event.server, event.step), out);
  }
  return Heard::kNothing;
}

absl::StatusOr<StepDriver::Heard> StepDriver::OnCommit(
    const CommitAnswered& event, absl::Time now, JobActions& out) {
  if (event.round != round_) return Heard::kNothing;
  if (IsPassing(event.status)) {
    server_waits_[0] =
        absl::StrCat("its commit (", event.status.message(), ")");
    commit_again_ = SyncLoop::CommitAction{event.step, event.attempt};
    retries_.Failed(0, now);
    return Heard::kNothing;
  }
  // The attempt has ended since ps 0 was prepared, for example because a member
  // died.
  if (absl::IsFailedPrecondition(event.status)) {
    retries_.Answered(0);
    Warn(out, absl::StrCat("step ", event.step, ": ", event.status.message(),
                           "; taking again"));
    Ask(loop_->OnCommitRefused(), out);
    return Heard::kNothing;
  }
  if (!event.status.ok()) return OfServer(0, event.status);
  retries_.Answered(0);
  // The servers have summed different sets; ps 0 has begun an attempt that only
  // it knows so far. The next takes carry it to the others.
  if (event.redone_attempt > 0) {
    SayWhoDiffers(out);
    contributors_.assign(num_servers_, {});
    stalls_.OnSet(event.redone_attempt, {}, now);
    Ask(loop_->OnCommitRefused(), out);
    return Heard::kBegunAnew;
  }
  loop_->OnCommitted(event.step);
  committed_attempt_ = event.attempt;
  pace_.Stepped(step(), now);
  return Heard::kStepped;
}

void StepDriver::SayWhoDiffers(JobActions& out) const {
  for (size_t server = 1; server < contributors_.size(); ++server) {
    if (contributors_[server].empty() || contributors_[server] == announced_) {
      continue;
    }
    Warn(out, absl::StrCat("step ", step(), ": ps ", server,
                           " has summed gradients of workers ",
                           absl::StrJoin(contributors_[server], ", "),
                           ", but the set is ", absl::StrJoin(announced_, ", "),
                           ": a worker pushes without being selected; the step "
                           "begins anew"));
  }
}

void StepDriver::OnAttempt(int64_t step, int64_t attempt, absl::Time now,
                           JobActions& out) {
  if (!loop_.has_value() || step != loop_->step()) return;
  stalls_.OnSet(attempt, {}, now);
  Ask(loop_->OnAttempt(attempt), out);
}

StepWaits StepDriver::Waits(const std::vector<MembershipTable::Member>& members,
                            absl::Time now) const {
  return {step() + 1, began_, server_waits_, MissingWorkers(members, now)};
}

std::string StepDriver::MissingWorkers(
    const std::vector<MembershipTable::Member>& members, absl::Time now) const {
  std::vector<std::string> missing;  // not alive; these come first
  std::vector<std::string> busy;
  for (const MembershipTable::Member& member : members) {
    if (member.task.type != TaskType::kWorker) continue;
    const bool announced = std::find(announced_.begin(), announced_.end(),
                                     member.task.index) != announced_.end();
    if (announced && !stalls_.IsMissed(member.task.index)) continue;
    std::string text = member.task.ToString();
    if (member.state == MembershipTable::State::kMissing) {
      absl::StrAppend(&text, " (not registered yet)");
    } else if (member.state != MembershipTable::State::kAlive) {
      absl::StrAppend(&text, " (gone)");
    } else {
      const std::string doing = Doing(member, job_.heartbeat_interval, now);
      busy.push_back(doing.empty() ? text
                                   : absl::StrCat(text, " (", doing, ")"));
      continue;
    }
    missing.push_back(text);
  }
  missing.insert(missing.end(), busy.begin(), busy.end());
  if (missing.size() > kMostNamed) {
    const size_t more = missing.size() - kMostNamed;
    missing.resize(kMostNamed);
    missing.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrJoin(missing, ", ");
}

}  // namespace lockstep::chief
