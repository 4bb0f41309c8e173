#include "server/step/strict/strict_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/shares.h"

namespace lockstep::server {

StrictGate::StrictGate(const Options& options)
    : AttemptGate(options.total_num_replicas),
      replicas_(options.replicas_to_aggregate) {}

int StrictGate::Quota(int worker) const {
  return SharesOf(worker, replicas_, num_workers());
}

std::vector<Gate::Answer> StrictGate::SetReplicas(
    int replicas_to_aggregate, const std::vector<int>& workers) {
  MutexLock lock(mutex_);
  replicas_ = replicas_to_aggregate;
  roll_.SetWorkers(workers);
  // A worker that has left must not hold a place in the set.
  announced_.RemoveLeavers(roll_);
  // Redo() would make it a member again if its last wait were still filed.
  return CancelLeavers();
}

std::vector<Gate::Answer> StrictGate::Redo(int64_t attempt) {
  MutexLock lock(mutex_);
  // The chief repeats the call, and it may come after a newer attempt.
  if (attempt <= attempt_) return {};
  redone_step_ = global_step_;
  StartAttempt(attempt);
  return AnswerWaiters();
}

absl::Status StrictGate::Check(const Pass& pass) const {
  LOCKSTEP_RETURN_IF_ERROR(roll_.CheckTakesPart(pass));
  if (pass.slot < 0 || pass.slot >= Quota(pass.worker)) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", pass.slot, " of worker ", pass.worker,
                     " is not below ", Quota(pass.worker)));
  }
  // A previous process of the worker holds its place in the set until the chief
  // expires it, and the chief does so when the new process registers.
  if (announced_.HasBefore(pass.worker, pass.incarnation)) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", pass.worker, " has an announcement of an ",
                     "incarnation before ", pass.incarnation,
                     "; register with the chief first"));
  }
  if (active_) LOCKSTEP_RETURN_IF_ERROR(CheckBegun(pass, global_step_));
  return roll_.CheckIncarnation(pass);
}

size_t StrictGate::NumMembers() const {
  return std::min<size_t>(announced_.size(), replicas_);
}

bool StrictGate::IsReady(const Pass& pass) const {
  const Waiter* wait = WaitOf(pass.worker);
  return wait != nullptr && !wait->computing &&
         Announcements::Same(wait->pass, pass);
}

bool StrictGate::IsMember(const Pass& pass) const {
  return announced_.HasAmong(NumMembers(), pass);
}

bool StrictGate::PassedOver(const Pass& pass) const {
  // This gate has seen only the commits since it opened: it says nothing of
  // older steps.
  if (pass.local_step < opened_step_ || pass.local_step >= global_step_) {
    return false;
  }
  const auto counted = counted_.find(pass.worker);
  return counted == counted_.end() || counted->second != pass.local_step;
}

absl::StatusOr<StrictGate::Announced> StrictGate::Announce(const Pass& pass) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(Check(pass));
  if (!active_) {
    return absl::FailedPreconditionError(
        "no step has begun; ask the chief for the plan first");
  }
  if (pass.local_step < global_step_ || finished_) {
    return Announced{Decision::kTooLate, 0, global_step_};
  }
  const bool newest = roll_.Note(pass, /*waits=*/false);
  const bool known = announced_.Has(pass);
  // A delayed announcement must not become a member: its worker has moved on,
  // and the step would wait for a gradient that never arrives.
  if (!known && !newest) return Announced{Decision::kTooLate, 0, global_step_};
  announced_.Add(pass);
  // The announcement stays filed: its worker may replace a member later.
  if (!IsMember(pass)) return Announced{Decision::kNotNeeded, 0, global_step_};
  return Announced{Decision::kSelected, attempt_, global_step_};
}

void StrictGate::Select(const Pass& ended) {
  // If every worker counts, the set is known before the step begins: the token
  // saves the announcement, which is one round trip per pass.
  const Pass next{ended.worker, ended.incarnation, global_step_, ended.pass + 1,
                  0};
  announced_.Add(next);
}

bool StrictGate::TryAnswer(const Waiter& waiter, Answer& answer) {
  answer = Answer{waiter.ticket};
  // The worker keeps count of its passes, and the answer to its push may be
  // lost.
  answer.not_needed = PassedOver(waiter.pass);
  if (AnswerIfFinished(answer)) return true;
  if (!active_) return false;
  const Pass& pass = waiter.pass;
  if (pass.local_step < global_step_) {
    answer.step = global_step_;
    answer.attempt = committed_attempt_;
    // A worker that still computes gets no token here, so it would not push for
    // this attempt.
    if (all_workers_count() && !waiter.computing) {
      Select(pass);
      answer.selected_attempt = attempt_;
    }
    return true;
  }
  // A watch ends only with the step.
  if (waiter.computing) return false;
  // A restarted server has lost the announcement. The worker waits with its
  // gradient in hand and does not announce it again.
  if (redone_step_ == global_step_) Recall(pass);
  // The cheaper question first: thousands of workers may wait.
  if (waiter.attempt < attempt_ && IsMember(pass)) {
    answer.outcome = Outcome::kRedo;
    answer.attempt = attempt_;
    return true;
  }
  // The wait continues, except that a worker with several shares gets a token
  // for the next share of this step that it has not pushed.
  if (!has_shares()) return false;
  answer.step = global_step_;
  answer.slot = FirstMissingSlot(pass.worker);
  return answer.slot < Quota(pass.worker);
}

void StrictGate::Recall(const Pass& pass) {
  // A worker with several shares computes them again instead: it holds only its
  // last gradient.
  if (has_shares() || pass.local_step != global_step_) return;
  announced_.Add(pass);
}

int StrictGate::FirstMissingSlot(int worker) const {
  int slot = 0;
  while (pushed_.count({worker, slot}) > 0) ++slot;
  return slot;
}

std::vector<Gate::Answer> StrictGate::File(Waiter waiter) {
  const bool of_this_attempt =
      waiter.pass.local_step == global_step_ && waiter.attempt == attempt_;
  // The worker sends this wait together with its push, so the share is done or
  // on its way.
  if (of_this_attempt) pushed_.emplace(waiter.pass.worker, waiter.pass.slot);
  // A wait changes nothing for other workers, so only this one can be answered
  // now.
  std::vector<Answer> answers(1);
  if (!TryAnswer(waiter, answers[0])) {
    Keep(waiter);
    answers.clear();
  }
  return answers;
}

bool StrictGate::DropAnnouncements(int worker, uint64_t incarnation) {
  bool was_member = false;
  for (size_t i = 0; i < NumMembers(); ++i) {
    const Pass& pass = announced_[i];
    was_member |= pass.worker == worker && pass.incarnation <= incarnation;
  }
  announced_.Remove(worker, incarnation);
  return was_member;
}

void StrictGate::StartAttempt(int64_t attempt) {
  attempt_ = attempt;
  // Workers with several shares hold only the gradient of the last one, so they
  // begin the step again.
  if (has_shares()) announced_.clear();
  pushed_.clear();
}

StrictGate::Expired StrictGate::Expire(int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  const bool held = DropAnnouncements(worker, incarnation);
  // The dead member's gradient may be on some servers and not on others, so a
  // new attempt starts from nothing everywhere. Without a place in the set
  // nothing is lost.
  if (held) StartAttempt(attempt_ + 1);
  Expired expired = ExpireWaits(worker, incarnation);
  expired.held_announcement = held;
  return expired;
}

StrictGate::Replaced StrictGate::Replace(int worker, int64_t step,
                                         int64_t attempt) {
  MutexLock lock(mutex_);
  Replaced replaced;
  replaced.step = global_step_;
  replaced.attempt = attempt_;
  // The chief decided on an older attempt: since then the member may have
  // pushed or may have been replaced.
  if (step != global_step_ || attempt != attempt_) return replaced;
  const size_t members = NumMembers();
  const size_t member = announced_.PlaceOf(worker, members);
  size_t substitute = members;
  // A worker that waits has its gradient in hand; any other might be as slow as
  // the member.
  while (substitute < announced_.size() && !IsReady(announced_[substitute])) {
    ++substitute;
  }
  if (member == members || substitute == announced_.size()) return replaced;
  replaced.by = announced_[substitute].worker;
  announced_.Replace(member, substitute);
  StartAttempt(attempt_ + 1);
  replaced.attempt = attempt_;
  replaced.answers = AnswerWaiters();
  return replaced;
}

absl::StatusOr<std::vector<StrictGate::Answer>> StrictGate::Commit(
    int64_t step, int64_t attempt) {
  MutexLock lock(mutex_);
  // The chief repeats a commit whose answer was lost.
  if (step == global_step_) return std::vector<Answer>();
  LOCKSTEP_RETURN_IF_ERROR(CheckCommit(step, attempt));
  if (announced_.size() < static_cast<size_t>(replicas_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("commit of attempt ", attempt, " of step ", step, " with ",
                     announced_.size(), " of ", replicas_, " gradients"));
  }
  for (size_t i = 0; i < NumMembers(); ++i) {
    // See PassedOver(): the answer to the push may be lost.
    counted_[announced_[i].worker] = global_step_;
  }
  BeginNextStep();
  announced_.clear();
  pushed_.clear();
  return AnswerWaiters();
}

std::vector<int> StrictGate::Members() const {
  MutexLock lock(mutex_);
  std::vector<int> members;
  for (size_t i = 0; i < NumMembers(); ++i) {
    members.push_back(announced_[i].worker);
  }
  std::sort(members.begin(), members.end());
  return members;
}

bool StrictGate::Counts(const Pass& pass) const {
  MutexLock lock(mutex_);
  // Without backups every worker counts. For another step this gate does not
  // know the set, and the engine judges the step itself.
  if (pass.local_step != global_step_ || num_workers() <= replicas_) {
    return true;
  }
  return announced_.PlaceOf(pass.worker, NumMembers()) < NumMembers();
}

}  // namespace lockstep::server
