#include "server/step/strict/strict_engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/count_text.h"

namespace lockstep::server {
namespace {

// Pushes that wait for one worker's gradient of a part: the first one, and the
// one that repeats it because its answer was lost.
constexpr size_t kWaiters = 2;

// Checks a gradient of a part, and its elements if `look_at_it`.
absl::Status CheckGradient(const PartUpdater& updater, int part,
                           PartGradient& gradient, bool look_at_it) {
  if (gradient.rows.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(updater.AdmitRows(part, gradient));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(size_t size,
                              updater.GradientSize(part, gradient.type));
    if (TotalSize(gradient.slices) != size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradient of part ", part, " has ", TotalSize(gradient.slices),
          " bytes; as ", std::string(GradientTypeName(gradient.type)),
          " the part has ", size));
    }
  }
  return look_at_it ? updater.CheckFinite(part, gradient) : absl::OkStatus();
}

// Checks a push. Where `refuse` is set and the push may be answered before its
// gradients are summed, or in parts, its elements are checked too.
absl::Status CheckForm(const PartUpdater& updater, bool refuse, bool has_shares,
                       Push& push) {
  const int64_t end =
      push.first_part + static_cast<int64_t>(push.gradients.size());
  if (push.first_part < 0 || push.gradients.empty() ||
      end > updater.num_parts()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parts ", push.first_part, " to ", end - 1, " are not all among the ",
        updater.num_parts(), " parts of this server"));
  }
  // The gradient of a single part is large, so its elements are checked while
  // they are summed. With several parts that would be too late: one part of the
  // push could have counted when another is refused.
  const bool look_now = refuse && (has_shares || push.gradients.size() > 1 ||
                                   push.gradients[0].rows);
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckGradient(updater, push.first_part + static_cast<int>(i),
                      push.gradients[i], look_now));
  }
  return absl::OkStatus();
}

}  // namespace

StrictEngine::StrictEngine(const Options& options, PartUpdater& updater)
    : options_(options),
      updater_(updater),
      replicas_(options.replicas_to_aggregate),
      parts_(updater.num_parts()) {}

void StrictEngine::Activate(int64_t global_step) {
  MutexLock lock(mutex_);
  step_ = global_step;
  attempt_ = 1;
}

absl::StatusOr<std::optional<PushOutcome>> StrictEngine::Judge(
    const Push& push) {
  const int64_t step = push.pass.local_step;
  LOCKSTEP_RETURN_IF_ERROR(Learn(step));
  if (step < step_) return PushOutcome::kStale;
  if (step > step_) {
    return absl::FailedPreconditionError(
        absl::StrCat("local_step ", step, " is ahead of this server, which ",
                     "is at step ", step_));
  }
  if (push.attempt < attempt_) return PushOutcome::kSuperseded;
  if (push.attempt > attempt_) {
    return absl::UnavailableError(
        absl::StrCat("attempt ", push.attempt, " of step ", step + 1,
                     " has not begun here; this server is at ", attempt_,
                     ", and hears of others from the chief; retry"));
  }
  return std::nullopt;
}

absl::StatusOr<ShardAnswers> StrictEngine::AddPush(uint64_t ticket, Push push) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckForm(updater_, options_.refuse_non_finite, has_shares(), push));
  ShardAnswers answers;
  std::vector<Work> work;
  {
    MutexLock lock(mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<PushOutcome> outcome, Judge(push));
    if (outcome.has_value()) {
      answers.pushes.push_back(
          {ticket, std::vector<PushOutcome>(push.gradients.size(), *outcome),
           step_, absl::OkStatus()});
      return answers;
    }
    if (!failure_.ok()) return failure_;
    auto pending = std::make_shared<Pending>();
    pending->ticket = ticket;
    pending->first_part = push.first_part;
    // Workers read single rows of tables, so the whole value is never wanted.
    pending->return_values =
        push.return_values && !has_shares() &&
        std::none_of(push.gradients.begin(), push.gradients.end(),
                     [](const PartGradient& g) { return g.rows.has_value(); });
    pending->outcomes.resize(push.gradients.size(), PushOutcome::kDuplicate);
    Collect(pending, push, work, answers);
    if (pending->undecided == 0) AnswerPush(*pending, answers);
  }
  answers.Append(Run(std::move(work)));
  return answers;
}

bool StrictEngine::IsChosen(int worker) const {
  return options_.gate == nullptr || options_.gate->Counts(worker, step_);
}

void StrictEngine::Collect(const std::shared_ptr<Pending>& pending, Push& push,
                           std::vector<Work>& work, ShardAnswers& answers) {
  const Contributor who(push.pass.worker, push.pass.slot);
  const bool chosen = IsChosen(push.pass.worker);
  for (size_t i = 0; i < push.gradients.size(); ++i) {
    const int index = push.first_part + static_cast<int>(i);
    Part& part = parts_[index];
    if (part.updated) continue;  // it counted before
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
      AddWaiter(contribution, pending, static_cast<int>(i), answers);
    } else if (inserted) {
      pending->outcomes[i] = PushOutcome::kAccepted;
    }
    if (inserted) MakeWork(index, work);
  }
}

void StrictEngine::AddWaiter(Contribution& contribution,
                             const std::shared_ptr<Pending>& pending, int i,
                             ShardAnswers& answers) {
  auto& waiters = contribution.waiters;
  if (waiters.size() >= kWaiters) {
    const std::shared_ptr<Pending> oldest = std::move(waiters.front().first);
    waiters.erase(waiters.begin());
    oldest->status.Update(
        absl::AbortedError("the same gradients have been pushed again"));
    if (--oldest->undecided == 0) AnswerPush(*oldest, answers);
  }
  waiters.emplace_back(pending, i);
  ++pending->undecided;
}

void StrictEngine::MakeWork(int index, std::vector<Work>& work) {
  Part& part = parts_[index];
  if (part.updating || part.updated ||
      part.collected.size() < static_cast<size_t>(replicas_)) {
    return;
  }
  // The map orders contributors by worker and slot, and so the summation.
  part.updating = true;
  Work item{index, step_, attempt_, {}, {}, {}};
  for (const auto& [who, contribution] : part.collected) {
    item.contributors.push_back(who);
    item.gradients.push_back(contribution.gradient);
  }
  work.push_back(std::move(item));
}

ShardAnswers StrictEngine::Run(std::vector<Work> work) {
  ShardAnswers answers;
  while (!work.empty()) {
    Work item = std::move(work.back());
    work.pop_back();
    if (!MayRun(item, work)) continue;
    // No lock is held here: this is the arithmetic of a step, and other parts
    // are updated at the same time.
    const absl::StatusOr<bool> finite =
        updater_.Update(item.part, item.step, item.gradients);
    if (finite.ok() && !*finite) FindNonFinite(item);
    MutexLock lock(mutex_);
    FinishPart(item, finite.status(), work, answers);
  }
  return answers;
}

void StrictEngine::FindNonFinite(Work& item) const {
  if (!options_.refuse_non_finite) return;
  for (size_t i = 0; i < item.gradients.size(); ++i) {
    const absl::Status finite =
        updater_.CheckFinite(item.part, item.gradients[i]);
    if (!finite.ok()) item.refused.emplace(item.contributors[i], finite);
  }
}

bool StrictEngine::MayRun(Work& item, std::vector<Work>& work) {
  MutexLock lock(mutex_);
  const int part = item.part;
  if (item.step != step_ || item.attempt != attempt_) {
    // The gradients of the newer attempt may have arrived while this work was
    // pending; the flag had kept MakeWork() from starting on them.
    parts_[part].updating = false;
    MakeWork(part, work);
    return false;
  }
  if (updater_.ClaimNext(part)) return true;
  blocked_.insert_or_assign(part, std::move(item));
  return false;
}

void StrictEngine::SetReplicas(int replicas_to_aggregate) {
  MutexLock lock(mutex_);
  replicas_ = replicas_to_aggregate;
}

ShardAnswers StrictEngine::PartReturned(int part) {
  std::vector<Work> work;
  {
    MutexLock lock(mutex_);
    auto blocked = blocked_.extract(part);
    if (blocked.empty()) return {};
    work.push_back(std::move(blocked.mapped()));
  }
  return Run(std::move(work));
}

std::vector<int> StrictEngine::BlockedParts() const {
  std::vector<int> parts;
  MutexLock lock(mutex_);
  for (const auto& [part, work] : blocked_) parts.push_back(part);
  return parts;
}

void StrictEngine::FinishPart(const Work& done, const absl::Status& status,
                              std::vector<Work>& work, ShardAnswers& answers) {
  Part& part = parts_[done.part];
  part.updating = false;
  if (done.step != step_ || done.attempt != attempt_) {
    MakeWork(done.part, work);  // a newer attempt may have become complete
    return;
  }
  if (!status.ok()) {
    Fail(status, answers);
    return;
  }
  if (!done.refused.empty()) {
    Refuse(done, answers);
    MakeWork(done.part, work);
    return;
  }
  DecideAll(part, PushOutcome::kAccepted, status, answers);
  for (const Contributor& who : done.contributors) {
    contributors_.insert(who.first);
  }
  part.updated = true;
  ++updated_parts_;
  if (!prepared()) return;
  const absl::Status marked = updater_.MarkPrepared(step_ + 1, attempt_);
  if (marked.ok()) {
    answers.prepared = {step_, attempt_};
    AnswerTake(marked, answers);
  } else {
    Fail(marked, answers);
  }
}

void StrictEngine::Refuse(const Work& done, ShardAnswers& answers) {
  Part& part = parts_[done.part];
  for (const auto& [who, why] : done.refused) {
    auto refused = part.collected.extract(who);
    Decide(refused.mapped(), PushOutcome::kSuperseded, why, answers);
  }
}

void StrictEngine::Fail(const absl::Status& status, ShardAnswers& answers) {
  failure_ = status;
  for (Part& part : parts_) {
    DecideAll(part, PushOutcome::kSuperseded, status, answers);
  }
  AnswerTake(status, answers);
}

void StrictEngine::DecideAll(Part& part, PushOutcome outcome,
                             const absl::Status& status,
                             ShardAnswers& answers) {
  for (auto& [who, contribution] : part.collected) {
    Decide(contribution, outcome, status, answers);
  }
  part.collected.clear();
}

void StrictEngine::Decide(Contribution& contribution, PushOutcome outcome,
                          const absl::Status& status, ShardAnswers& answers) {
  bool first = true;
  for (auto& [pending, index] : contribution.waiters) {
    // Only one of the calls for a gradient is told that it was added.
    const bool repeated = outcome == PushOutcome::kAccepted && !first;
    pending->outcomes[index] = repeated ? PushOutcome::kDuplicate : outcome;
    first = false;
    pending->status.Update(status);
    if (--pending->undecided == 0) AnswerPush(*pending, answers);
  }
  contribution.waiters.clear();
}

void StrictEngine::AnswerPush(Pending& pending, ShardAnswers& answers) {
  PushAnswer answer{
      pending.ticket, pending.outcomes, step_, pending.status, {}};
  const bool counted = std::all_of(
      pending.outcomes.begin(), pending.outcomes.end(), [](PushOutcome o) {
        return o == PushOutcome::kAccepted || o == PushOutcome::kDuplicate;
      });
  if (pending.return_values && counted && pending.status.ok()) {
    for (size_t i = 0; i < pending.outcomes.size(); ++i) {
      answer.values.push_back(
          updater_.LendNext(pending.first_part + static_cast<int>(i)));
    }
  }
  answers.pushes.push_back(std::move(answer));
}

void StrictEngine::Supersede(int64_t attempt, ShardAnswers& answers) {
  // Before the first part is written again: a server that is killed meanwhile
  // must not come back with half of each attempt.
  if (prepared()) updater_.DropPrepared();
  attempt_ = attempt;
  failure_ = absl::OkStatus();
  for (Part& part : parts_) {
    DecideAll(part, PushOutcome::kSuperseded, absl::OkStatus(), answers);
    part.updated = false;
  }
  updated_parts_ = 0;
  contributors_.clear();
}

void StrictEngine::AnswerTake(const absl::Status& status,
                              ShardAnswers& answers) {
  if (!take_.has_value()) return;
  answers.takes.push_back({*take_,
                           status.ok(),
                           attempt_,
                           status,
                           {contributors_.begin(), contributors_.end()}});
  take_.reset();
}

absl::StatusOr<ShardAnswers> StrictEngine::Take(uint64_t ticket, int64_t step) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(Learn(step));
  if (step != step_) {
    return absl::FailedPreconditionError(
        absl::StrCat("take of step ", step, " from a server at step ", step_));
  }
  ShardAnswers answers;
  if (take_.has_value()) {
    answers.takes.push_back({*take_, false, 0, absl::OkStatus()});
  }
  take_ = ticket;
  if (prepared() || !failure_.ok()) AnswerTake(failure_, answers);
  return answers;
}

std::optional<ShardAnswers::Prepared> StrictEngine::WaitsForCommit() const {
  MutexLock lock(mutex_);
  if (!prepared()) return std::nullopt;
  return ShardAnswers::Prepared{step_, attempt_};
}

void StrictEngine::CancelTake(uint64_t ticket) {
  MutexLock lock(mutex_);
  if (take_ == ticket) take_.reset();
}

absl::Status StrictEngine::Learn(int64_t step) {
  if (step != step_ + 1 || !prepared()) return absl::OkStatus();
  if (options_.gate != nullptr && options_.gate->global_step() < step) {
    return absl::OkStatus();
  }
  return CommitLocked(step);
}

absl::Status StrictEngine::CommitLocked(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(updater_.Commit(step));
  step_ = step;
  attempt_ = 1;
  updated_parts_ = 0;
  contributors_.clear();
  for (Part& part : parts_) part.updated = false;
  return absl::OkStatus();
}

absl::Status StrictEngine::CheckCommitLocked(int64_t step,
                                             int64_t attempt) const {
  if (step == step_) return absl::OkStatus();
  if (step == step_ + 1 && prepared() && attempt == attempt_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "commit of step ", step, ", attempt ", attempt, ", on a server at step ",
      step_, ", attempt ", attempt_, ", with ", updated_parts_, " of ",
      parts_.size(), " parts updated"));
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
  // A failure shows at the chief's own commit.
  Learn(step).IgnoreError();
  if (step == step_ && attempt > attempt_) Supersede(attempt, answers);
  return answers;
}

void StrictEngine::LearnCommitted(int64_t step) {
  MutexLock lock(mutex_);
  Learn(step).IgnoreError();  // as in StartAttempt()
}

int64_t StrictEngine::step() const {
  MutexLock lock(mutex_);
  return step_;
}

Engine::Arrivals StrictEngine::arrivals() const {
  MutexLock lock(mutex_);
  Arrivals arrivals;
  arrivals.attempt = attempt_;
  for (const Part& part : parts_) {
    if (part.updated || part.updating) continue;
    ++arrivals.open_parts;
    int last = -1;
    for (const auto& [who, contribution] : part.collected) {
      if (who.first != last) ++arrivals.parts[who.first];
      last = who.first;
    }
  }
  return arrivals;
}

std::string StrictEngine::WaitsFor() const {
  MutexLock lock(mutex_);
  size_t fewest = replicas_;
  int open = 0;
  for (const Part& part : parts_) {
    if (part.updated || part.updating) continue;
    ++open;
    fewest = std::min(fewest, part.collected.size());
  }
  if (open == 0 && !blocked_.empty()) {
    return absl::StrCat("readers of older values of ",
                        CountText(std::ssize(blocked_), "part"));
  }
  if (open == 0) return "";
  return absl::StrCat(replicas_ - fewest, " of ",
                      CountText(static_cast<int64_t>(replicas_), "gradient"),
                      " of ", CountText(open, "part"));
}

}  // namespace lockstep::server
