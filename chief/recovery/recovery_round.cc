#include "chief/recovery/recovery_round.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/plan/mirror_reducers.h"
#include "common/base/status_macros.h"
#include "common/text/progress_text.h"

namespace lockstep::chief {
namespace {

// The result of a round of a running job that found no checkpoint. The job
// waits for its volume; a job that starts says at once what is wrong with it.
absl::Status WaitForVolume(const absl::Status& why) {
  // No wait mends checkpoints that are all damaged, or of a newer format.
  if (absl::IsDataLoss(why) || absl::IsFailedPrecondition(why)) return why;
  return absl::UnavailableError(why.message());
}

// True if one of the mirrors that were found has all that the job has
// committed: mirror 0, which also says for sure which mirrors the job needs, or
// one that has not missed the last opening, if this chief knows which that was.
bool KnowsAll(absl::Span<const ServerReport> reports,
              const RecoveryRound::Request& request) {
  if (reports[0].committed_step >= 0) return true;
  return request.opened_epoch > 0 &&
         LastOpening(reports) >= request.opened_epoch;
}

}  // namespace

absl::StatusOr<ShardGroup::Found> RecoveryRound::Create(
    const Plan& plan, const Request& request, bool anew,
    ShardGroup::Failures failed) {
  const auto create = [&](ShardGroup::Failures* failures) {
    return servers_.Create(
        job_, PlanAmong(plan, servers_.used()),
        anew ? ShardCalls::State::kDiscard : ShardCalls::State::kKeep,
        WatchWork(/*keeps=*/!anew), failures);
  };
  const bool first = !request.step.has_value();
  LOCKSTEP_ASSIGN_OR_RETURN(ShardGroup::Found found,
                            create(MayLeaveOut(anew) ? &failed : nullptr));
  // Otherwise a mirror that has failed may be the only one with the state.
  if (!failed.empty() && !KnowsAll(found.reports, request)) {
    return failed.begin()->second;
  }
  // What the servers keep of the workers is of the run that ends here.
  if (first && !anew) source_.OnFound(found.reports);
  LeaveOut(failed).IgnoreError();  // those that the job needs are below
  const std::vector<int> needed = first ? source_.Servers() : request.servers;
  for (const int server : needed) {
    if (found.reports[server].takes_part) continue;
    // The next round begins without a mirror that was left out.
    return absl::UnavailableError(
        failed.count(server) > 0
            ? std::string(failed[server].message())
            : absl::StrCat("ps ", server,
                           " takes part in the job, and is away"));
  }
  if (needed == servers_.used()) return found;
  servers_.Use(needed);
  // In a new epoch: a delayed copy of a call above would have a server open its
  // state again, with the parts of the plan above.
  ShardGroup::Failures later;
  ShardGroup::Failures* const may_fail = MayLeaveOut(anew) ? &later : nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t epoch, servers_.TakeEpoch(may_fail));
  source_.OnEpoch(epoch);
  LOCKSTEP_ASSIGN_OR_RETURN(found, create(may_fail));
  LOCKSTEP_RETURN_IF_ERROR(LeaveOut(later));
  return found;
}

absl::Status RecoveryRound::LeaveOut(const ShardGroup::Failures& failed) {
  for (const auto& [server, why] : failed) source_.OnLeftOut(server, why);
  if (failed.empty()) return absl::OkStatus();
  return absl::UnavailableError(failed.begin()->second.message());
}

absl::Status RecoveryRound::Decide(
    absl::FunctionRef<void(int64_t checkpoint_step)> decide, bool first,
    const Outcome& outcome) {
  // By the names of checkpoints only: reading a large one takes minutes, and a
  // job that continues from its servers' state need not wait for that.
  const absl::StatusOr<int64_t> latest = source_.LatestStep();
  // The servers may hold an older step than a checkpoint of a newer format.
  if (first && absl::IsFailedPrecondition(latest.status())) {
    return latest.status();
  }
  decide(latest.value_or(-1));
  if (outcome.plan.action == RecoveryPlan::Action::kResume) {
    return absl::OkStatus();
  }
  // Now reads the whole checkpoint, and decides again if it is damaged.
  const absl::StatusOr<int64_t> whole = source_.WholeStep();
  if (!whole.ok()) {
    return first ? whole.status() : WaitForVolume(whole.status());
  }
  decide(*whole);
  return absl::OkStatus();
}

absl::StatusOr<RecoveryRound::Outcome> RecoveryRound::Run(
    const Plan& plan, const Request& request) {
  const bool first = !request.step.has_value();
  servers_.Use(request.servers);
  const bool anew = first && source_.BeginsAnew();
  ShardGroup::Failures failed;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const uint64_t epoch,
      servers_.TakeEpoch(MayLeaveOut(anew) ? &failed : nullptr));
  source_.OnEpoch(epoch);
  LOCKSTEP_ASSIGN_OR_RETURN(ShardGroup::Found found,
                            Create(plan, request, anew, std::move(failed)));
  Outcome outcome;
  outcome.map = std::move(found.map);
  outcome.servers = servers_.used();
  const auto decide = [&](int64_t checkpoint_step) {
    outcome.checkpoint_step = checkpoint_step;
    outcome.plan = plan.mirrored
                       ? MakeMirrorPlan(found.reports, checkpoint_step,
                                        request.step.value_or(-1),
                                        job_.train_steps, request.opened_epoch)
                       : MakeRecoveryPlan(
                             found.reports, job_.mode == SyncMode::kCompatible,
                             checkpoint_step, request.step.value_or(-1));
  };
  LOCKSTEP_RETURN_IF_ERROR(Decide(decide, first, outcome));
  // Without the state of mirror 0, only a mirror that has not missed the last
  // opening has all that the job has committed.
  const bool elsewhere = outcome.plan.no_server_has_it ||
                         (found.reports[0].committed_step < 0 &&
                          LastOpening(found.reports) < request.opened_epoch);
  if (request.others_have_state && elsewhere) {
    source_.OnStateElsewhere();
    return absl::UnavailableError(
        "no server that is left has the state, which another one may have");
  }
  if (outcome.plan.action == RecoveryPlan::Action::kResume) {
    if (source_.OnResume(found.reports, first)) outcome.plan.redo = true;
    for (const ServerReport& report : found.reports) {
      if (first) members_.ShutOutWorkers(report.workers, clock_.Now());
    }
    LOCKSTEP_RETURN_IF_ERROR(Resume(outcome, first));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(StartFrom(outcome, first));
  }
  return outcome;
}

ShardGroup::OnWorking RecoveryRound::WatchWork(bool keeps) {
  struct Seen {
    // Below any report, so that the first one counts as progress.
    ShardCalls::Working working{.done_bytes = -1};
    absl::Time moved;
    absl::Time began;
  };
  const auto seen = std::make_shared<std::map<int, Seen>>();  // by server
  return [this, seen, keeps](
             int server, const ShardCalls::Working& working) -> absl::Status {
    const auto [entry, first] = seen->try_emplace(server);
    Seen& now = entry->second;
    if (first) now.began = clock_.Now();
    if (working.done_bytes > now.working.done_bytes) {
      now.working = working;
      now.moved = clock_.Now();
    }
    const std::string what = absl::StrCat(
        "ps ", server, " to create its variables",
        ProgressText(working.done_bytes, working.total_bytes,
                     absl::ToDoubleSeconds(clock_.Now() - now.began)));
    if (clock_.Now() - now.moved > ShardCalls::kLongestStandstill) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the job waits for ", what, ", which makes no progress"));
    }
    return Report(what, keeps);
  };
}

absl::Status RecoveryRound::Report(const std::string& what, bool keeps) {
  const absl::Status end = source_.OnWorking(what);
  if (end.ok() || !keeps) return end;
  asked_to_end_ = std::min(asked_to_end_, clock_.Now());
  // Without this round the last step of the job would not be saved.
  const bool over = clock_.Now() - asked_to_end_ > job_.lease;
  return over ? end : absl::OkStatus();
}

absl::Status RecoveryRound::Resume(Outcome& outcome, bool first) {
  workers_expired_ = false;
  outcome.step = outcome.plan.step;
  ShardCalls::Opening opening;
  opening.global_step = outcome.step;
  opening.attempt = outcome.plan.redo ? FirstAttempt(servers_.epoch()) : 0;
  Complete(opening);
  if (!outcome.plan.copies.empty()) {
    const std::string what =
        absl::StrCat("ps ", absl::StrJoin(outcome.plan.copies, ", "),
                     " to take the state of step ", outcome.step, " from ps ",
                     outcome.plan.donor);
    LOCKSTEP_RETURN_IF_ERROR(Report(what, /*keeps=*/true));
    const auto report =
        WithProgress(what, clock_, [this](const std::string& text) {
          return Report(text, /*keeps=*/true);
        });
    ShardGroup::Failures failed;
    const absl::Status copied = servers_.CopyState(
        job_, outcome.map, outcome.plan.donor, outcome.plan.copies,
        WatchWork(/*keeps=*/true), report, opening,
        MayLeaveOut(/*anew=*/false) ? &failed : nullptr);
    LOCKSTEP_RETURN_IF_ERROR(LeaveOut(failed));
    LOCKSTEP_RETURN_IF_ERROR(AgainIfKilled(copied));
  }
  LOCKSTEP_RETURN_IF_ERROR(AgainIfKilled(servers_.Activate(opening)));
  return first ? ExpirePredecessors() : absl::OkStatus();
}

absl::Status RecoveryRound::ExpirePredecessors() {
  members_.ExpectPredecessors();
  for (const MembershipTable::Member& member : members_.Members()) {
    if (member.task.type != TaskType::kWorker || member.incarnation == 0) {
      continue;
    }
    LOCKSTEP_RETURN_IF_ERROR(
        servers_
            .ExpireWorker(member.task.index, member.incarnation - 1,
                          "replaced before this chief started")
            .status());
  }
  return absl::OkStatus();
}

absl::Status RecoveryRound::StartFrom(Outcome& outcome, bool first) {
  ShardCalls::Opening opening;
  opening.global_step = outcome.plan.step;
  const bool discard = outcome.plan.action == RecoveryPlan::Action::kGoBack;
  LOCKSTEP_RETURN_IF_ERROR(source_.OnStartFrom(outcome.plan, first));
  ExpireWorkers(discard || !first, outcome.plan.step);
  if (begins_attempt_) opening.attempt = FirstAttempt(servers_.epoch());
  if (discard) {
    LOCKSTEP_RETURN_IF_ERROR(servers_
                                 .Create(job_, outcome.map.plan,
                                         ShardCalls::State::kDiscard,
                                         WatchWork(/*keeps=*/false))
                                 .status());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<RecoverySource::Restored> restored,
                            source_.Restore(outcome.map));
  outcome.checkpoint_step = -1;
  if (restored.has_value()) {
    outcome.checkpoint_step = restored->step;
    opening.global_step = restored->step;
    opening.scalars = std::move(restored->scalars);
  }
  outcome.step = opening.global_step;
  workers_expired_ = false;  // from here on they may be at work
  return Open(std::move(opening));
}

// Once for all rounds until servers are open: a round that is repeated because
// the first values have not arrived must not expire the worker that sends them.
void RecoveryRound::ExpireWorkers(bool have_worked, int64_t step) {
  if (std::exchange(workers_expired_, true)) return;
  // This chief may not know the workers of another one, which may have trained
  // before this one started, or while it hung.
  members_.ShutOutWorkers();
  // If workers have been at work, their tokens and values are void, even if no
  // server has any state left.
  begins_attempt_ = have_worked || members_.HasTakenOver();
  if (!begins_attempt_) return;
  members_.ExpireAll(TaskType::kWorker,
                     absl::StrCat("the job went back to step ", step),
                     clock_.Now());
}

absl::Status RecoveryRound::AgainIfKilled(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  // The server was killed, or has committed, after it reported its state.
  return absl::UnavailableError(status.message());
}

absl::Status RecoveryRound::Open(ShardCalls::Opening opening) {
  Complete(opening);
  return AgainIfKilled(servers_.Activate(opening));
}

void RecoveryRound::Complete(ShardCalls::Opening& opening) {
  for (const MembershipTable::Member& member : members_.Members()) {
    if (member.task.type != TaskType::kWorker || member.incarnation == 0) {
      continue;
    }
    // A live process is admitted; its predecessors are not.
    const bool alive = member.state == MembershipTable::State::kAlive;
    const uint64_t last = member.incarnation - (alive ? 1 : 0);
    if (last > 0) opening.expired.emplace_back(member.task.index, last);
  }
  opening.workers = members_.ShutOut();
  for (const int worker : source_.EndedInput()) {
    opening.workers.push_back({.worker = worker, .input_ended = true});
  }
  opening.settings = source_.settings();
}

}  // namespace lockstep::chief
