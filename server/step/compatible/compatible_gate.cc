#include "server/step/compatible/compatible_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {
namespace {

// A wait ends with a token, with the end of the queue, or because another wait
// of the worker has replaced it.
std::vector<Gate::Answer> ToAnswers(
    const TokenQueue::Completions& completions) {
  std::vector<Gate::Answer> answers;
  for (const TokenQueue::Completed& completed : completions) {
    Gate::Answer answer{completed.id};
    if (completed.status.ok()) {
      answer.step = completed.token;
    } else if (absl::IsOutOfRange(completed.status)) {
      answer.outcome = Gate::Outcome::kFinished;
    } else {
      answer.outcome = Gate::Outcome::kCancelled;
    }
    answers.push_back(answer);
  }
  return answers;
}

}  // namespace

std::vector<Gate::Answer> CompatibleGate::Issue(int count, int64_t step) {
  absl::StatusOr<TokenQueue::Completions> completions =
      queue_.EnqueueMany(std::vector<int64_t>(count, step));
  // A step that completes after the end issues no tokens, as in TensorFlow.
  return completions.ok() ? ToAnswers(*completions) : std::vector<Answer>();
}

std::vector<Gate::Answer> CompatibleGate::Activate(int64_t global_step) {
  {
    MutexLock lock(mutex_);
    if (active_) return {};
    active_ = true;
    global_step_ = global_step;
  }
  // Without the lock, as for every call of the queue.
  return Issue(options_.initial_tokens, global_step);
}

std::vector<Gate::Answer> CompatibleGate::IssueInitialTokens() {
  return Issue(options_.initial_tokens, global_step());
}

// Selects every pass: an accumulator judges a gradient when it arrives.
absl::StatusOr<Gate::Announced> CompatibleGate::Announce(const Pass&) {
  MutexLock lock(mutex_);
  return Announced{Decision::kSelected, 0, global_step_};
}

absl::StatusOr<std::vector<Gate::Answer>> CompatibleGate::Wait(uint64_t ticket,
                                                               const Pass& pass,
                                                               int64_t,
                                                               absl::Time now) {
  absl::StatusOr<TokenQueue::Completions> completions =
      queue_.TakeToken(ticket, {pass.worker, pass.incarnation, pass.pass}, now);
  // The queue is closed and empty: training has ended.
  if (absl::IsOutOfRange(completions.status())) {
    return std::vector<Answer>{{ticket, Outcome::kFinished}};
  }
  LOCKSTEP_RETURN_IF_ERROR(completions.status());
  return ToAnswers(*completions);
}

absl::StatusOr<std::vector<Gate::Answer>> CompatibleGate::Watch(uint64_t,
                                                                const Pass&,
                                                                absl::Time) {
  return absl::InvalidArgumentError(
      "computing is set, but a pass of compatible mode is never over before "
      "its end; leave it out");
}

void CompatibleGate::Cancel(uint64_t ticket) { queue_.Cancel(ticket); }

void CompatibleGate::FinishPass(const Pass& pass) {
  // The token of a pass was taken after the pass before.
  queue_.Settle({pass.worker, pass.incarnation, pass.pass - 1});
}

Gate::Expired CompatibleGate::Expire(int worker, uint64_t incarnation) {
  Expired expired;
  // Before ReturnTokensOf(), which ends the leases.
  for (const TokenQueue::Lease& lease : queue_.GetState().leases) {
    if (lease.taker.worker == worker &&
        lease.taker.incarnation <= incarnation && !lease.settled) {
      expired.held_token = true;
    }
  }
  expired.answers = ToAnswers(queue_.ReturnTokensOf(worker, incarnation));
  expired.step = global_step();
  return expired;
}

std::vector<Gate::Answer> CompatibleGate::SetReplicas(
    int replicas_to_aggregate, const std::vector<int>& workers) {
  const int replicas = workers.empty() ? options_.total_num_replicas
                                       : static_cast<int>(workers.size());
  // Without more tokens a larger step could starve: too few workers could begin
  // a pass for it.
  const int needed = std::max(replicas_to_aggregate, replicas);
  int missing = 0;
  int64_t step = 0;
  {
    MutexLock lock(mutex_);
    if (active_) missing = needed - tokens_per_step_;
    tokens_per_step_ = needed;
    step = global_step_;
  }
  return missing > 0 ? Issue(missing, step) : std::vector<Answer>();
}

absl::StatusOr<std::vector<Gate::Answer>> CompatibleGate::Commit(int64_t step,
                                                                 int64_t) {
  int tokens = 0;
  {
    MutexLock lock(mutex_);
    if (step == global_step_) return std::vector<Answer>();
    if (step != global_step_ + 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("commit of step ", step, " while the global step is ",
                       global_step_, "; commit ", global_step_ + 1));
    }
    global_step_ = step;
    tokens = tokens_per_step_;
  }
  return Issue(tokens, step);
}

std::vector<Gate::Answer> CompatibleGate::Finish() {
  return ToAnswers(queue_.Close());
}

int64_t CompatibleGate::global_step() const {
  MutexLock lock(mutex_);
  return global_step_;
}

uint64_t CompatibleGate::NewestIncarnation(int worker) const {
  return queue_.NewestIncarnation(worker);
}

std::vector<Gate::Waiting> CompatibleGate::WaitingWorkers() const {
  std::vector<Waiting> waiting;
  for (const TokenQueue::Waiting& wait : queue_.GetState().waiting) {
    waiting.push_back({wait.taker.worker, wait.since});
  }
  return waiting;
}

}  // namespace lockstep::server
