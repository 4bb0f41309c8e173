#include "server/step/compatible/token_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/incarnation_bounds.h"
#include "common/wire/status_detail.h"

namespace lockstep::server {

absl::StatusOr<TokenQueue::Completions> TokenQueue::EnqueueMany(
    absl::Span<const int64_t> tokens) {
  if (tokens.empty()) return Completions();
  MutexLock lock(mutex_);
  if (closed_) {
    return absl::CancelledError("the token queue is closed; issue no tokens");
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  Completions completed;
  Serve(completed);
  return completed;
}

absl::StatusOr<TokenQueue::Completions> TokenQueue::TakeToken(
    uint64_t id, const Taker& taker, absl::Time now) {
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckRequest(id));
  LOCKSTEP_RETURN_IF_ERROR(CheckTaker(taker));
  // A repeated call whose first answer was lost. It comes before the check of
  // the end: the token was taken before.
  if (const Lease* lease = FindLease(taker); lease != nullptr) {
    return Completions{{id, absl::OkStatus(), lease->token}};
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckNotDrained());

  Completions completed;
  // A repeated call while the first one waits.
  const auto waiting = FindWaitingWorker(taker.worker);
  if (waiting != waiting_.end() && waiting->taker == taker) {
    completed.push_back(
        {std::exchange(waiting->id, id),
         absl::CancelledError("the worker has repeated its call"), 0});
    return completed;
  }
  // A later pass or a newer process: the older wait is over.
  if (waiting != waiting_.end()) CancelWaiting(waiting, completed);
  // The chief may not have expired the previous process yet. Its token is kept
  // for ReturnTokensOf(): the lease is overwritten below.
  const auto before = members_.find(taker.worker);
  if (before != members_.end() &&
      before->second.incarnation < taker.incarnation &&
      before->second.lease.has_value() && !before->second.lease->settled) {
    left_[taker.worker].emplace(before->second.incarnation,
                                before->second.lease->token);
  }
  // The request for a later pass shows that the earlier token was used.
  members_[taker.worker] = {taker.incarnation, taker.pass, std::nullopt};
  waiting_.push_back({id, taker, now});
  Serve(completed);
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
  Left& left = left_[worker];
  const auto end = left.upper_bound(incarnation);
  for (auto token = left.begin(); token != end; ++token) {
    // Back to the front: these tokens are older than the queued ones.
    tokens_.push_front(token->second);
  }
  left.erase(left.begin(), end);
  const auto found = members_.find(worker);
  if (found != members_.end() && found->second.incarnation <= incarnation) {
    const auto waiting = FindWaitingWorker(worker);
    if (waiting != waiting_.end()) CancelWaiting(waiting, completed);
    std::optional<Lease>& lease = found->second.lease;
    if (lease.has_value() && !lease->settled) {
      tokens_.push_front(lease->token);
      lease.reset();
    }
  }
  // Also without such a lease: tokens of replaced processes have come back.
  Serve(completed);
  return completed;
}

void TokenQueue::Reopen() {
  MutexLock lock(mutex_);
  closed_ = false;
}

TokenQueue::Completions TokenQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  Completions completed;
  Serve(completed);
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

uint64_t TokenQueue::NewestIncarnation(int32_t worker) const {
  MutexLock lock(mutex_);
  const auto member = members_.find(worker);
  return member == members_.end() ? 0 : member->second.incarnation;
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
  return std::find_if(
      waiting_.begin(), waiting_.end(),
      [worker](const Waiting& w) { return w.taker.worker == worker; });
}

absl::Status TokenQueue::CheckRequest(uint64_t id) {
  if (FindWaiting(id) == waiting_.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("id ", id, " already waits; use another one"));
}

absl::Status TokenQueue::CheckTaker(const Taker& taker) const {
  const auto member = members_.find(taker.worker);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckDrawn(TaskId{TaskType::kWorker, taker.worker}, taker.incarnation,
                 member == members_.end() ? 0 : member->second.incarnation));
  if (member == members_.end()) return absl::OkStatus();
  const auto& [incarnation, pass, lease] = member->second;
  if (taker.incarnation < incarnation) {
    return WithNewestIncarnation(
        absl::FailedPreconditionError(absl::StrCat(
            "incarnation ", taker.incarnation, " of worker ", taker.worker,
            " has been replaced by ", incarnation, "; leave")),
        incarnation);
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

void TokenQueue::Serve(Completions& completed) {
  while (!waiting_.empty() && (closed_ || !tokens_.empty())) {
    const Waiting& head = waiting_.front();
    Completed ended{head.id, CheckNotDrained(), 0};
    if (ended.status.ok()) {
      ended.token = tokens_.front();
      tokens_.pop_front();
      members_[head.taker.worker].lease = Lease{head.taker, ended.token, false};
    }
    completed.push_back(std::move(ended));
    waiting_.pop_front();
  }
}

}  // namespace lockstep::server
