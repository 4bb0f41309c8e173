#include "server/step/strict/strict_engine.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/count_text.h"
#include "server/step/strict/push_checks.h"

namespace lockstep::server {
namespace {

Contributor ContributorOf(const Pass& pass, bool shared) {
  // A shared step leaves the worker out: every copy of a number is the same
  // gradient, and the sums are in the order of the numbers.
  return shared ? Contributor(pass.slot, 0)
                : Contributor(pass.worker, pass.slot);
}

void AddWorkers(const std::vector<Contributor>& from, std::set<int>& to) {
  for (const Contributor& who : from) to.insert(who.first);
}

// True if the gradient of a pass of shared work has arrived for all parts that
// this server sums. `updating` of a part proves nothing: it may be work of an
// older attempt.
template <typename Part>
bool AllHave(const std::vector<Part>& parts, const MeanSquares& squares,
             const MirrorParts& mirror, const Pass& pass) {
  const Contributor who = ContributorOf(pass, /*shared=*/true);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].updated || squares.has(static_cast<int>(i))) continue;
    if (mirror.copied(i)) continue;
    if (parts[i].collected.count(who) == 0) return false;
  }
  return true;
}

}  // namespace

StrictEngine::StrictEngine(const Options& options, PartUpdater& updater)
    : options_(options),
      mirror_(options.copied),
      updater_(updater),
      replicas_(options.replicas_to_aggregate),
      next_replicas_(replicas_),
      parts_(updater.num_parts()),
      squares_(parts_.size()),
      pushes_(updater) {}

void StrictEngine::Activate(int64_t global_step) {
  MutexLock lock(mutex_);
  active_ = true;
  step_ = global_step;
  attempt_ = 1;
}

absl::StatusOr<ShardAnswers> StrictEngine::AddPush(uint64_t ticket, Push push) {
  // Without the lock: this may read every element of the push.
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPush(updater_, options_.refuse_non_finite, has_shares(), push));
  LOCKSTEP_RETURN_IF_ERROR(
      mirror_.CheckPush(push.first_part, push.gradients.size()));
  // Before the push is judged: on ps task 0 this may commit the step that the
  // gate has committed already, which makes the push one of the current step.
  LOCKSTEP_RETURN_IF_ERROR(CheckReached(push.pass.local_step));
  ShardAnswers answers;
  std::vector<PartWork> work;
  {
    MutexLock lock(mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<PushOutcome> outcome,
                              JudgePush(push, step_, attempt_));
    if (outcome.has_value()) {
      answers.pushes.push_back(
          {ticket, std::vector<PushOutcome>(push.gradients.size(), *outcome),
           step_, absl::OkStatus()});
      return answers;
    }
    // A failed attempt cannot complete, so it collects nothing more.
    if (!failure_.ok()) return failure_;
    // The answer has values only if it waits for the update. A worker with
    // several shares is answered before that, and so is every worker where
    // means are kept.
    const std::shared_ptr<PendingPush> pending =
        MakePending(ticket, push, !has_shares() && !keeps_means());
    Collect(pending, push, work, answers);
    // If no part waits for an update, no later call would answer the push.
    if (pending->undecided == 0) pushes_.Answer(*pending, step_, answers);
  }
  // Without the lock: an update takes time in proportion to its part, and other
  // parts are pushed meanwhile.
  answers.Append(Run(std::move(work)));
  return answers;
}

bool StrictEngine::IsChosen(const Pass& pass) const {
  return options_.gate == nullptr || options_.gate->Counts(pass);
}

void StrictEngine::Collect(const std::shared_ptr<PendingPush>& pending,
                           Push& push, std::vector<PartWork>& work,
                           ShardAnswers& answers) {
  const Contributor who = ContributorOf(push.pass, options_.shared);
  // ps task 0 knows the set of the step. The other servers take each gradient
  // of the attempt, and the chief compares the sets before it commits.
  const bool chosen = IsChosen(push.pass);
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    const int index = push.first_part + static_cast<int>(i);
    Part& part = parts_[index];
    if (part.updated || squares_.has(index)) continue;  // it counted before
    if (!chosen) {
      pending->outcomes[i] = PushOutcome::kSuperseded;
      continue;
    }
    auto [entry, inserted] = part.collected.try_emplace(who);
    Contribution& contribution = entry->second;
    // A repeated gradient is dropped: the first one may be in use already.
    if (inserted) {
      contribution.incarnation = push.pass.incarnation;
      contribution.pass = push.pass.pass;
      contribution.gradient = std::move(push.gradients[i]);
    }
    if (!has_shares()) {
      pushes_.Await(contribution, pending, static_cast<int>(i), step_, answers);
    } else if (inserted) {
      pending->outcomes[i] = PushOutcome::kAccepted;
    }
    if (inserted) MakeWork(index, work);
  }
}

void StrictEngine::SetReplicas(int replicas_to_aggregate) {
  MutexLock lock(mutex_);
  // No part is completed here: the caller starts a newer attempt, which drops
  // all gradients that were collected for the old number. Where work is shared,
  // those that still come for the old attempt are of blocks of the old size:
  // fewer of them must not complete a part even until then.
  next_replicas_ = replicas_to_aggregate;
  if (!options_.shared || !active_) replicas_ = replicas_to_aggregate;
}

void StrictEngine::FinishPart(const PartWork& done, const absl::Status& status,
                              std::vector<PartWork>& work,
                              ShardAnswers& answers) {
  Part& part = parts_[done.part];
  part.updating = false;
  // The attempt may have ended while the update ran without the lock. That
  // update wrote only the part's next value, which the newer attempt writes
  // again.
  if (done.step != step_ || done.attempt != attempt_)
    return OnStaleWorkEnded(done.part, work, answers);
  // After kAborted, the mirror that lends the mean computes another one. It
  // does so only in a newer attempt, which the chief announces here too: a
  // commit needs this server's update. If another part has failed meanwhile,
  // Fail() has decided the gradients of all parts, and removed them.
  if (absl::IsAborted(status) || !failure_.ok()) return;
  if (!status.ok()) return Fail(status, answers);
  // The part lacks these gradients again.
  if (!done.refused.empty()) {
    pushes_.Refuse(part.collected, done.refused, step_, answers);
    MakeWork(done.part, work);
    return;
  }
  pushes_.DecideAll(part.collected, PushOutcome::kAccepted, status, step_,
                    answers);
  // Every server sums the same numbers of a shared step.
  if (!options_.shared) AddWorkers(done.contributors, contributors_);
  if (done.kind == PartWork::Kind::kMeasure ||
      done.kind == PartWork::Kind::kKeep) {
    return OnMeanKept(done, work, answers);
  }
  part.updated = true;
  ++updated_parts_;
  if (!prepared()) return;
  // Before any answer: once the chief knows of the prepared step it relies on
  // it, even if this process is killed right after.
  const absl::Status marked = updater_.MarkPrepared(step_ + 1, attempt_);
  if (marked.ok()) {
    answers.prepared = {step_, attempt_};
    AnswerTake(marked, answers);
  } else {
    Fail(marked, answers);
  }
}

void StrictEngine::Fail(const absl::Status& status, ShardAnswers& answers) {
  failure_ = status;
  for (Part& part : parts_) {
    pushes_.DecideAll(part.collected, PushOutcome::kSuperseded, status, step_,
                      answers);
  }
  AnswerTake(status, answers);
}

void StrictEngine::Supersede(int64_t attempt, ShardAnswers& answers) {
  // Before the first part is written again: a server that is killed meanwhile
  // must not come back with half of each attempt.
  if (prepared()) updater_.DropPrepared();
  attempt_ = attempt;
  replicas_ = next_replicas_;
  failure_ = absl::OkStatus();
  for (Part& part : parts_) {
    pushes_.DecideAll(part.collected, PushOutcome::kSuperseded,
                      absl::OkStatus(), step_, answers);
  }
  Reset();
  answers.means_changed = mirror_.mirrored();
}

void StrictEngine::Reset() {
  updated_parts_ = 0;
  squares_.Reset();
  contributors_.clear();
  // `updating` stays set: a thread of the older attempt may still write to the
  // part. When it is done, FinishPart() or MayRun() clears the flag and starts
  // the work of the newer attempt.
  for (Part& part : parts_) part.updated = false;
}

void StrictEngine::AnswerTake(const absl::Status& status,
                              ShardAnswers& answers) {
  TakeAnswer answer{
      .prepared = prepared(),
      .attempt = attempt_,
      .status = status,
      .contributors = {contributors_.begin(), contributors_.end()}};
  if (limits_mean()) answer.squares = squares_.Sum();
  take_.Answer(std::move(answer), answers);
}

absl::StatusOr<ShardAnswers> StrictEngine::Take(uint64_t ticket, int64_t step) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(Learn(step));
  if (step != step_) {
    return absl::FailedPreconditionError(
        absl::StrCat("take of step ", step, " from a server at step ", step_));
  }
  ShardAnswers answers;
  take_.File(ticket, answers);
  // The event that ends the wait may have happened before the wait was filed.
  if (prepared() || squares_.waits() || !failure_.ok()) {
    AnswerTake(failure_, answers);
  }
  return answers;
}

std::optional<ShardAnswers::Prepared> StrictEngine::WaitsForCommit() const {
  MutexLock lock(mutex_);
  if (!prepared()) return std::nullopt;
  return ShardAnswers::Prepared{step_, attempt_};
}

void StrictEngine::CancelTake(uint64_t ticket) {
  MutexLock lock(mutex_);
  take_.Cancel(ticket);
}

absl::Status StrictEngine::Learn(int64_t step) {
  if (step != step_ + 1 || !prepared()) return absl::OkStatus();
  const Gate* gate = options_.gate;
  if (gate != nullptr && gate->global_step() < step) return absl::OkStatus();
  // The gate has committed the step for the whole job, so this server follows.
  return CommitLocked(step);
}

// The gate of ps task 0 gives tokens before the values are committed, so a call
// with such a token may arrive before the commit.
absl::Status StrictEngine::CheckReached(int64_t step) {
  MutexLock lock(mutex_);
  if (step <= step_) return absl::OkStatus();
  if (options_.gate != nullptr) LOCKSTEP_RETURN_IF_ERROR(Learn(step));
  return CheckStep(step, step_,
                   options_.gate == nullptr && step == step_ + 1 && prepared());
}

absl::Status StrictEngine::CommitLocked(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(updater_.Commit(step));
  step_ = step;
  attempt_ = 1;
  replicas_ = next_replicas_;
  Reset();
  // Other mirrors may have means of the next step already.
  if (options_.on_commit) options_.on_commit();
  return absl::OkStatus();
}

absl::Status StrictEngine::CheckCommitLocked(int64_t step,
                                             int64_t attempt) const {
  // The chief repeats a commit whose answer was lost.
  if (step == step_) return absl::OkStatus();
  if (step == step_ + 1 && prepared() && attempt == attempt_) {
    return absl::OkStatus();
  }
  return CommitRefused({step, attempt}, {step_, attempt_},
                       absl::StrCat(updated_parts_, " of ", parts_.size()));
}

absl::Status StrictEngine::CheckCommit(int64_t step, int64_t attempt) const {
  MutexLock lock(mutex_);
  return CheckCommitLocked(step, attempt);
}

absl::StatusOr<ShardAnswers> StrictEngine::Commit(int64_t step,
                                                  int64_t attempt) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckCommitLocked(step, attempt));
  if (step != step_) LOCKSTEP_RETURN_IF_ERROR(CommitLocked(step));
  return ShardAnswers();
}

ShardAnswers StrictEngine::StartAttempt(int64_t step, int64_t attempt) {
  MutexLock lock(mutex_);
  ShardAnswers answers;
  // If the commit fails here, the chief's own Commit() reports it.
  Learn(step).IgnoreError();
  if (step == step_ && attempt > attempt_) Supersede(attempt, answers);
  return answers;
}

int64_t StrictEngine::step() const {
  MutexLock lock(mutex_);
  return step_;
}

Engine::Arrivals StrictEngine::arrivals() const {
  MutexLock lock(mutex_);
  Arrivals arrivals = {attempt_, 0, {}};
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (HasAll(i) || mirror_.copied(i)) continue;
    ++arrivals.open_parts;
    if (!options_.shared) CountWorkers(parts_[i].collected, arrivals.parts);
  }
  return arrivals;
}

bool StrictEngine::HasGradientOf(const Pass& pass, int64_t attempt) const {
  MutexLock lock(mutex_);
  // A failed attempt has dropped all gradients, and would refuse this one.
  return !options_.shared || !failure_.ok() || pass.local_step != step_ ||
         attempt != attempt_ || AllHave(parts_, squares_, mirror_, pass);
}

std::string StrictEngine::WaitsFor() const {
  MutexLock lock(mutex_);
  WaitCounts waits{.gradients = replicas_};
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (HasAll(i)) continue;
    waits.Add(mirror_.copied(i), std::ssize(parts_[i].collected));
  }
  waits.blocked = blocked_.size();
  waits.norm = limits_mean() && squares_.waits();
  return TextOf(waits);
}

}  // namespace lockstep::server
