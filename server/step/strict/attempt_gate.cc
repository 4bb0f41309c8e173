#include "server/step/strict/attempt_gate.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {

std::vector<Gate::Answer> AttemptGate::Activate(int64_t global_step) {
  MutexLock lock(mutex_);
  // The gate is open already: a chief that was started again repeats the call,
  // and the step goes on.
  if (active_) return {};
  active_ = true;
  opened_step_ = global_step;
  global_step_ = global_step;
  return AnswerWaiters();
}

absl::StatusOr<std::vector<Gate::Answer>> AttemptGate::Wait(uint64_t ticket,
                                                            const Pass& pass,
                                                            int64_t attempt,
                                                            absl::Time now) {
  MutexLock lock(mutex_);
  return Accept({ticket, pass, attempt, now, /*computing=*/false});
}

absl::StatusOr<std::vector<Gate::Answer>> AttemptGate::Watch(uint64_t ticket,
                                                             const Pass& pass,
                                                             absl::Time now) {
  MutexLock lock(mutex_);
  return Accept({ticket, pass, 0, now, /*computing=*/true});
}

absl::StatusOr<std::vector<Gate::Answer>> AttemptGate::Accept(
    const Waiter& waiter) {
  LOCKSTEP_RETURN_IF_ERROR(Check(waiter.pass));
  if (!roll_.Note(waiter.pass, /*waits=*/!waiter.computing)) {
    return std::vector<Answer>{{waiter.ticket, Outcome::kCancelled}};
  }
  // A worker waits for one thing at a time. The older wait is a call that it
  // has given up, or its watch while it computed.
  const std::vector<Answer> replaced =
      CancelWaits(waiter.pass.worker, std::numeric_limits<uint64_t>::max());
  std::vector<Answer> answers = File(waiter);
  // Last: the answers that give tokens are the urgent ones.
  answers.insert(answers.end(), replaced.begin(), replaced.end());
  return answers;
}

void AttemptGate::Keep(const Waiter& waiter) {
  const Place place =
      waiters_.emplace_hint(waiters_.end(), ++arrivals_, waiter);
  places_[waiter.pass.worker] = place;
}

AttemptGate::Place AttemptGate::Remove(Place place) {
  places_.erase(place->second.pass.worker);
  return waiters_.erase(place);
}

const AttemptGate::Waiter* AttemptGate::WaitOf(int worker) const {
  const auto place = places_.find(worker);
  return place == places_.end() ? nullptr : &place->second->second;
}

bool AttemptGate::AnswerIfFinished(Answer& answer) const {
  if (!finished_) return false;
  answer.outcome = Outcome::kFinished;
  if (active_) {
    answer.step = global_step_;
    answer.attempt = committed_attempt_;
  }
  return true;
}

std::vector<Gate::Answer> AttemptGate::AnswerWaiters() {
  std::vector<Answer> answers;
  for (Place place = waiters_.begin(); place != waiters_.end();) {
    Answer answer;
    if (TryAnswer(place->second, answer)) {
      answers.push_back(answer);
      place = Remove(place);
    } else {
      ++place;
    }
  }
  return answers;
}

std::vector<Gate::Answer> AttemptGate::CancelLeavers() {
  std::vector<Answer> answers;
  for (Place place = waiters_.begin(); place != waiters_.end();) {
    const Waiter& waiter = place->second;
    if (roll_.TakesPart(waiter.pass.worker)) {
      ++place;
      continue;
    }
    answers.push_back(Answer{waiter.ticket, Outcome::kCancelled});
    place = Remove(place);
  }
  return answers;
}

std::vector<Gate::Answer> AttemptGate::CancelWaits(int worker,
                                                   uint64_t admitted) {
  const auto place = places_.find(worker);
  if (place == places_.end()) return {};
  const Waiter& waiter = place->second->second;
  if (waiter.pass.incarnation >= admitted) return {};
  std::vector<Answer> answers = {Answer{waiter.ticket, Outcome::kCancelled}};
  Remove(place->second);
  return answers;
}

Gate::Expired AttemptGate::ExpireWaits(int worker, uint64_t incarnation) {
  Expired expired;
  // The worker's only wait may be that of its new process, which stays.
  expired.answers = CancelWaits(worker, roll_.Expire(worker, incarnation));
  for (const Answer& answer : AnswerWaiters()) {
    expired.answers.push_back(answer);
  }
  expired.step = global_step_;
  expired.attempt = attempt_;
  return expired;
}

absl::Status AttemptGate::CheckCommit(int64_t step, int64_t attempt) const {
  if (step == global_step_ + 1 && attempt == attempt_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "commit of attempt ", attempt, " of step ", step,
      " while the global step is ", global_step_, " and the attempt ", attempt_,
      "; commit attempt ", attempt_, " of step ", global_step_ + 1));
}

void AttemptGate::BeginNextStep() {
  ++global_step_;
  // Attempts count from 1 in every step. Tokens carry the committed attempt:
  // workers keep the values that a push of this attempt has returned, and no
  // others.
  committed_attempt_ = std::exchange(attempt_, 1);
}

void AttemptGate::Cancel(uint64_t ticket) {
  MutexLock lock(mutex_);
  for (Place place = waiters_.begin(); place != waiters_.end(); ++place) {
    if (place->second.ticket != ticket) continue;
    Remove(place);
    return;
  }
}

std::vector<Gate::Answer> AttemptGate::Finish() {
  MutexLock lock(mutex_);
  finished_ = true;
  return AnswerWaiters();
}

void AttemptGate::Reopen() {
  MutexLock lock(mutex_);
  finished_ = false;
}

int64_t AttemptGate::global_step() const {
  MutexLock lock(mutex_);
  return global_step_;
}

uint64_t AttemptGate::NewestIncarnation(int worker) const {
  MutexLock lock(mutex_);
  return roll_.NewestIncarnation(worker);
}

std::vector<Gate::Waiting> AttemptGate::WaitingWorkers() const {
  MutexLock lock(mutex_);
  std::vector<Waiting> waiting;
  for (const auto& [arrival, waiter] : waiters_) {
    if (waiter.computing) continue;
    waiting.push_back({waiter.pass.worker, waiter.since});
  }
  return waiting;
}

}  // namespace lockstep::server
