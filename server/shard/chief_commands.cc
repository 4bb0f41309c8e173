#include "server/shard/chief_commands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/wire/epoch_bounds.h"

namespace lockstep::server {
namespace {

void Append(std::vector<Gate::Answer>& to,
            const std::vector<Gate::Answer>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// True if each of the sets equals the set of `members`, which may hold a worker
// several times. All are ascending.
bool AreAll(const std::vector<std::vector<int>>& sets,
            std::vector<int> members) {
  // Servers report each worker once, however many shares it has.
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return std::all_of(
      sets.begin(), sets.end(),
      [&](const std::vector<int>& set) { return set == members; });
}

}  // namespace

absl::StatusOr<std::shared_ptr<Shard>> ChiefCommands::CheckedShard(
    const Chief& chief) {
  LOCKSTEP_RETURN_IF_ERROR(
      host_.CheckChief(chief.job_id, chief.epoch, chief.incarnation));
  return host_.shard();
}

absl::StatusOr<uint64_t> ChiefCommands::TakeEpoch(const std::string& job_id,
                                                  uint64_t newer_than,
                                                  uint64_t chief) {
  MutexLock lock(epoch_mutex_);
  return host_.TakeEpoch(job_id, newer_than, chief);
}

absl::StatusOr<ChiefCommands::Ready> ChiefCommands::Activate(
    const Chief& chief, const Opening& opening) {
  // From the check of the chief to the last change, here and below: an order of
  // an older chief must not follow the epoch of a newer one.
  MutexLock lock(epoch_mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, CheckedShard(chief));
  // Before the fences: a call that is refused must leave them as they are.
  LOCKSTEP_RETURN_IF_ERROR(shard->CheckActivate(
      opening.global_step, opening.scalars, opening.attempt, opening.settings));
  for (const auto& [worker, incarnation] : opening.expired) {
    host_.ExpireWorker(worker, incarnation);
  }
  host_.KeepStandings(opening.workers);
  // Workers are fenced off before the shard opens, so that no push of theirs
  // gets in between.
  LOCKSTEP_ASSIGN_OR_RETURN(
      Shard::Activated activated,
      shard->Activate(opening.global_step, opening.scalars, opening.attempt,
                      opening.settings));
  Ready ready = SettleLocked(*shard, std::move(activated.answers));
  Append(ready.tokens, activated.tokens);
  return ready;
}

absl::StatusOr<std::vector<Gate::Answer>> ChiefCommands::CloseTokens(
    const Chief& chief) {
  MutexLock lock(epoch_mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, CheckedShard(chief));
  if (shard->gate() == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", host_.task_index(), " has no token queue; ask ps 0"));
  }
  return shard->gate()->Finish();
}

absl::StatusOr<ChiefCommands::Ready> ChiefCommands::Take(
    const Chief& chief, uint64_t ticket, const TakeOrder& order) {
  const int64_t step = order.step;
  LOCKSTEP_RETURN_IF_ERROR(CheckAttempt(order.attempt));
  if (order.norm.has_value() && order.norm->norm < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("norm is ", order.norm->norm, ", but must be 0 or more"));
  }
  std::shared_ptr<Shard> shard;
  {
    MutexLock lock(epoch_mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(shard, CheckedShard(chief));
    // Under the lock: the grant of an older chief must not follow the epoch of
    // a newer one.
    shard->Grant(order.commit_until);
  }
  ShardAnswers updated;
  if (order.norm.has_value()) {
    updated = shard->engine().ApplyNorm(step, *order.norm);
  }
  // The step may have been prepared before the grant, or by ApplyNorm(): no
  // further push will come to commit it.
  Ready begun = Settle(*shard, {.prepared = shard->engine().WaitsForCommit()});
  begun.answers.Append(std::move(updated));
  begun.answers.prepared.reset();
  while (true) {
    const int64_t at = shard->engine().step();
    // A push has committed the step since the chief's call, under a grant: that
    // is the answer.
    if (shard->gate() != nullptr && at > step && shard->WasGranted(at)) {
      begun.answers.takes.push_back({ticket, true, 0, absl::OkStatus()});
      begun.committed_step = at;
      return begun;
    }
    begun.answers.Append(shard->engine().StartAttempt(step, order.attempt));
    absl::StatusOr<ShardAnswers> answers = shard->engine().Take(ticket, step);
    if (answers.ok()) {
      begun.answers.Append(*std::move(answers));
      Ready ready = Settle(*shard, std::move(begun.answers));
      Append(ready.tokens, begun.tokens);
      return ready;
    }
    // The step has not moved during the call, so no push has committed a
    // granted step in between: the error is real.
    if (shard->engine().step() == at) {
      begun.answers.takes.push_back({ticket, false, 0, answers.status()});
      return begun;
    }
  }
}

absl::StatusOr<std::shared_ptr<Shard>> ChiefCommands::WithdrawGrant(
    const Chief& chief) {
  // Under the lock that every commit takes: one that was granted is over.
  MutexLock lock(epoch_mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, CheckedShard(chief));
  shard->Grant(0);
  return shard;
}

absl::StatusOr<std::vector<Gate::Answer>> ChiefCommands::CommitStep(
    Shard& shard, int64_t step, int64_t attempt) {
  // First: the gate must not commit a step for the job that the values of this
  // server cannot follow.
  LOCKSTEP_RETURN_IF_ERROR(shard.engine().CheckCommit(step, attempt));
  std::vector<Gate::Answer> tokens;
  // The gate goes first: it refuses an attempt that has been given up. Its
  // tokens go out only after the values are committed.
  if (shard.gate() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(tokens, shard.gate()->Commit(step, attempt));
    PassFaultPoint(FaultPoint::kPsCommitHalfDone);
  }
  LOCKSTEP_RETURN_IF_ERROR(shard.engine().Commit(step, attempt).status());
  return tokens;
}

absl::StatusOr<ChiefCommands::Committed> ChiefCommands::Commit(
    const Chief& chief, int64_t step, int64_t attempt,
    const std::vector<std::vector<int>>& contributors) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAttempt(attempt));
  Committed committed;
  MutexLock lock(epoch_mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, CheckedShard(chief));
  if (shard->gate() != nullptr) committed.members = shard->gate()->Members();
  // A repeated commit is not compared: the members are those of the next step
  // then.
  if (shard->gate() != nullptr && shard->gate()->global_step() + 1 == step &&
      !AreAll(contributors, committed.members)) {
    LOCKSTEP_RETURN_IF_ERROR(shard->engine().CheckCommit(step, attempt));
    // Another server has summed other gradients than those of ps task 0's
    // members: a member has died or was replaced between its pushes. The step
    // is made again from one set.
    committed.redone_attempt = attempt + 1;
    committed.ready.answers =
        shard->engine().StartAttempt(step - 1, committed.redone_attempt);
    committed.ready.tokens = shard->gate()->Redo(committed.redone_attempt);
    committed.global_step = shard->engine().step();
    return committed;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(committed.ready.tokens,
                            CommitStep(*shard, step, attempt));
  committed.global_step = shard->engine().step();
  return committed;
}

absl::StatusOr<ChiefCommands::Expired> ChiefCommands::ExpireWorker(
    const Chief& chief, int worker, uint64_t incarnation, int64_t step,
    int64_t attempt, bool input_ended) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAttempt(attempt));
  MutexLock lock(epoch_mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, CheckedShard(chief));
  if (input_ended) {
    host_.KeepStandings({{.worker = worker, .input_ended = true}});
  }
  if (incarnation == 0 && shard->gate() != nullptr) {
    // A chief that has just started knows the worker's task but not its
    // incarnation.
    incarnation = shard->gate()->NewestIncarnation(worker);
  }
  host_.ExpireWorker(worker, incarnation);
  // Before the gate frees the worker's place: from here on its pushes are
  // refused.
  Expired expired;
  expired.incarnation = incarnation;
  expired.step = step;
  expired.attempt = attempt;
  std::vector<Gate::Answer> tokens;
  if (shard->gate() != nullptr) {
    const Gate::Expired held = shard->gate()->Expire(worker, incarnation);
    expired.held_announcement = held.held_announcement;
    expired.held_token = held.held_token;
    expired.step = held.step;
    expired.attempt = held.attempt;
    tokens = held.answers;
  }
  expired.ready = SettleLocked(
      *shard, shard->engine().StartAttempt(expired.step, expired.attempt));
  Append(expired.ready.tokens, tokens);
  return expired;
}

absl::StatusOr<ChiefCommands::Replaced> ChiefCommands::ReplaceMember(
    const Chief& chief, int worker, int64_t step, int64_t attempt) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAttempt(attempt));
  MutexLock lock(epoch_mutex_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, CheckedShard(chief));
  Replaced replaced;
  replaced.step = step;
  replaced.attempt = attempt;
  std::vector<Gate::Answer> tokens;
  if (shard->gate() != nullptr) {
    const Gate::Replaced by = shard->gate()->Replace(worker, step, attempt);
    static_cast<ReplacedMember&>(replaced) = by;
    // No backup is ready, or the step has moved on: nothing has changed.
    if (!by.by.has_value()) return replaced;
    tokens = by.answers;
  }
  replaced.ready = SettleLocked(
      *shard, shard->engine().StartAttempt(replaced.step, replaced.attempt));
  Append(replaced.ready.tokens, tokens);
  return replaced;
}

ChiefCommands::Ready ChiefCommands::Settle(Shard& shard, ShardAnswers answers) {
  // Most pushes prepare no step, and must not wait for one another.
  if (!answers.prepared.has_value()) {
    Ready ready;
    ready.answers = std::move(answers);
    return ready;
  }
  MutexLock lock(epoch_mutex_);
  return SettleLocked(shard, std::move(answers));
}

ChiefCommands::Ready ChiefCommands::SettleLocked(Shard& shard,
                                                 ShardAnswers answers) {
  Ready ready;
  if (answers.prepared.has_value()) {
    const int64_t step = answers.prepared->step + 1;
    // Under the lock, like every commit: a newer chief may have withdrawn the
    // grant.
    if (shard.MayCommit(step)) {
      auto committed = CommitStep(shard, step, answers.prepared->attempt);
      // If the commit fails, the chief's own Commit() reports the error.
      if (committed.ok()) {
        ready.tokens = *std::move(committed);
        ready.committed_step = step;
      }
    }
  }
  ready.answers = std::move(answers);
  return ready;
}

}  // namespace lockstep::server
