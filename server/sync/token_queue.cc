#include "server/sync/token_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<TokenQueue::Completions> TokenQueue::Enqueue(int64_t token) {
  return EnqueueMany(absl::MakeConstSpan(&token, 1));
}

absl::StatusOr<TokenQueue::Completions> TokenQueue::EnqueueMany(
    absl::Span<const int64_t> tokens) {
  Completions completed;
  if (tokens.empty()) return completed;
  MutexLock lock(mutex_);
  if (closed_) {
    return absl::CancelledError("the token queue is closed; issue no tokens");
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  ServeWaiting(completed);
  return completed;
}

absl::StatusOr<TokenQueue::Completions> TokenQueue::Dequeue(uint64_t id,
                                                            absl::Time now) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckRequest(id));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotDrained());
  waiting_.push_back({id, std::nullopt, now});
  Completions completed;
  ServeWaiting(completed);
  return completed;
}

absl::StatusOr<TokenQueue::Completions> TokenQueue::TakeToken(
    uint64_t id, const Taker& taker, absl::Time now) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckRequest(id));
  LOCKSTEP_RETURN_IF_ERROR(CheckTaker(taker));
  if (const Lease* lease = FindLease(taker); lease != nullptr) {
    return Completions{{id, absl::OkStatus(), lease->token}};
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckNotDrained());

  Completions completed;
  const auto waiting = FindWaitingWorker(taker.worker);
  if (waiting != waiting_.end() && waiting->taker == taker) {
    completed.push_back(
        {std::exchange(waiting->id, id),
         absl::CancelledError("the worker has repeated its call"), 0});
    return completed;
  }
  if (waiting != waiting_.end()) CancelWaiting(waiting, completed);
  members_[taker.worker] = {taker.incarnation, taker.pass, std::nullopt};
  waiting_.push_back({id, taker, now});
  ServeWaiting(completed);
  return completed;
}

void TokenQueue::Settle(const Taker& taker) {
  MutexLock lock(mutex_);
  const auto member = members_.find(taker.worker);
  if (member == members_.end() || !member->second.lease) return;
  Lease& lease = *member->second.lease;
  if (lease.taker == taker) lease.settled = true;
}

TokenQueue::Completions TokenQueue::ReturnTokensOf(int32_t worker,
                                                   uint64_t incarnation) {
  MutexLock lock(mutex_);
  Completions completed;
  const auto found = members_.find(worker);
  if (found == members_.end() || found->second.incarnation != incarnation) {
    return completed;
  }
  const auto waiting = FindWaitingWorker(worker);
  if (waiting != waiting_.end()) CancelWaiting(waiting, completed);
  std::optional<Lease>& lease = found->second.lease;
  if (lease.has_value() && !lease->settled) {
    tokens_.push_front(lease->token);
    lease.reset();
    ServeWaiting(completed);
  }
  return completed;
}

absl::StatusOr<TokenQueue::Completions> TokenQueue::Close(
    bool cancel_pending_enqueues) {
  MutexLock lock(mutex_);
  if (closed_ && !cancel_pending_enqueues) {
    return absl::CancelledError("the token queue is closed already");
  }
  closed_ = true;
  Completions completed;
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    completed.push_back({waiting.id, CheckNotDrained(), 0});
  }
  return completed;
}

TokenQueue::Completions TokenQueue::Cancel(uint64_t id) {
  MutexLock lock(mutex_);
  Completions completed;
  const auto waiting = FindWaiting(id);
  if (waiting != waiting_.end()) CancelWaiting(waiting, completed);
  return completed;
}

size_t TokenQueue::size() const {
  MutexLock lock(mutex_);
  return tokens_.size();
}

TokenQueue::State TokenQueue::GetState() const {
  MutexLock lock(mutex_);
  State state;
  state.tokens.assign(tokens_.begin(), tokens_.end());
  state.waiting.assign(waiting_.begin(), waiting_.end());
  for (const auto& [worker, member] : members_) {
    if (member.lease.has_value()) state.leases.push_back(*member.lease);
  }
  state.closed = closed_;
  return state;
}

TokenQueue::WaitingList::iterator TokenQueue::FindWaiting(uint64_t id) {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [id](const Waiting& w) { return w.id == id; });
}

TokenQueue::WaitingList::iterator TokenQueue::FindWaitingWorker(
    int32_t worker) {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [worker](const Waiting& w) {
                        return w.taker.has_value() && w.taker->worker == worker;
                      });
}

absl::Status TokenQueue::CheckRequest(uint64_t id) {
  if (FindWaiting(id) == waiting_.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("id ", id, " already waits; use another one"));
}

absl::Status TokenQueue::CheckTaker(const Taker& taker) const {
  const auto member = members_.find(taker.worker);
  if (member == members_.end()) return absl::OkStatus();
  const auto& [incarnation, pass, lease] = member->second;
  if (taker.incarnation < incarnation) {
    return absl::FailedPreconditionError(absl::StrCat(
        "incarnation ", taker.incarnation, " of worker ", taker.worker,
        " has been replaced by ", incarnation, "; leave"));
  }
  if (taker.incarnation == incarnation && taker.pass < pass) {
    return absl::FailedPreconditionError(absl::StrCat(
        "pass is ", taker.pass, ", must be at least ", pass,
        ", the latest that worker ", taker.worker, " has taken a token after"));
  }
  return absl::OkStatus();
}

const TokenQueue::Lease* TokenQueue::FindLease(const Taker& taker) const {
  const auto member = members_.find(taker.worker);
  if (member == members_.end() || !member->second.lease) return nullptr;
  const Lease& lease = *member->second.lease;
  return lease.taker == taker ? &lease : nullptr;
}

absl::Status TokenQueue::CheckNotDrained() const {
  if (!closed_ || !tokens_.empty()) return absl::OkStatus();
  return absl::OutOfRangeError("the token queue is closed and empty");
}

void TokenQueue::CancelWaiting(const WaitingList::const_iterator& waiting,
                               Completions& completed) {
  completed.push_back(
      {waiting->id, absl::CancelledError("the wait was cancelled"), 0});
  waiting_.erase(waiting);
}

void TokenQueue::ServeWaiting(Completions& completed) {
  while (!tokens_.empty() && !waiting_.empty()) {
    const Waiting& head = waiting_.front();
    const int64_t token = tokens_.front();
    if (head.taker.has_value()) {
      members_[head.taker->worker].lease = Lease{*head.taker, token, false};
    }
    completed.push_back({head.id, absl::OkStatus(), token});
    tokens_.pop_front();
    waiting_.pop_front();
  }
}

}  // namespace lockstep
