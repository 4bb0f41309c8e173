#include "chief/steps/sync_loop.h"

#include <algorithm>
#include <cmath>

namespace lockstep::chief {

SyncLoop::SyncLoop(const std::vector<int>& servers, int64_t global_step)
    : step_(global_step) {
  for (const int server : servers) servers_[server] = std::nullopt;
}

SyncLoop::Actions SyncLoop::Begin() {
  phase_ = Phase::kTaking;
  for (auto& [server, progress] : servers_) progress.reset();
  norm_.reset();
  Actions actions;
  actions.takes = Unprepared();
  return actions;
}

SyncLoop::Actions SyncLoop::OnPrepared(int server, int64_t step,
                                       int64_t attempt,
                                       std::optional<double> squares) {
  if (!IsAwaited(server, step)) return {};
  servers_[server] = Progress{attempt, true, squares.value_or(0)};
  return Decide();
}

SyncLoop::Actions SyncLoop::OnMeasured(int server, int64_t step,
                                       int64_t attempt, double squares) {
  if (!IsAwaited(server, step)) return {};
  servers_[server] = Progress{attempt, false, squares};
  Actions actions = Decide();
  // The server answered before it had the norm.
  if (norm_.has_value() && actions.takes.empty()) {
    actions.takes.push_back(server);
  }
  return actions;
}

SyncLoop::Actions SyncLoop::OnTakeAgain(int server, int64_t step) {
  Actions actions;
  if (IsAwaited(server, step) &&
      !(servers_[server].has_value() && servers_[server]->prepared)) {
    actions.takes.push_back(server);
  }
  return actions;
}

bool SyncLoop::IsAwaited(int server, int64_t step) const {
  return phase_ == Phase::kTaking && step == step_ &&
         servers_.count(server) > 0;
}

std::vector<int> SyncLoop::ForgetOlder(int64_t newest) {
  std::vector<int> servers;
  for (auto& [server, progress] : servers_) {
    if (!progress.has_value() || progress->attempt >= newest) continue;
    progress.reset();
    servers.push_back(server);
  }
  // The norm covered gradients that no longer count.
  if (!servers.empty()) norm_.reset();
  return servers;
}

SyncLoop::Actions SyncLoop::Decide() {
  Actions actions;
  int64_t newest = 0;
  double squares = 0;  // added in the order of servers
  bool prepared = true;
  for (const auto& [server, progress] : servers_) {
    if (!progress.has_value()) return actions;
    newest = std::max(newest, progress->attempt);
    squares += progress->squares;
    prepared = prepared && progress->prepared;
  }
  // These servers answered for a set that has been given up since.
  actions.takes = ForgetOlder(newest);
  if (!actions.takes.empty()) return actions;
  if (prepared) {
    phase_ = Phase::kCommitting;
    actions.commit = CommitAction{step_ + 1, newest};
    return actions;
  }
  // The takes with the norm are under way.
  if (norm_.has_value() && norm_->attempt == newest) return actions;
  norm_ = MeanNorm{newest, std::sqrt(squares)};
  actions.takes = Unprepared();
  return actions;
}

SyncLoop::Actions SyncLoop::OnAttempt(int64_t attempt) {
  Actions actions;
  // While a commit is under way, its answer reports the newer attempt.
  if (phase_ == Phase::kTaking) actions.takes = ForgetOlder(attempt);
  return actions;
}

void SyncLoop::OnCommitted(int64_t step) {
  if (phase_ != Phase::kCommitting || step != step_ + 1) return;
  step_ = step;
  phase_ = Phase::kBetween;
}

void SyncLoop::OnCommittedByServer(int64_t step) {
  if (phase_ != Phase::kTaking || step <= step_) return;
  step_ = step;
  phase_ = Phase::kBetween;
}

SyncLoop::Actions SyncLoop::OnCommitRefused() {
  if (phase_ != Phase::kCommitting) return {};
  return Begin();
}

std::vector<int> SyncLoop::Unprepared() const {
  std::vector<int> servers;
  for (const auto& [server, progress] : servers_) {
    if (!progress.has_value() || !progress->prepared) servers.push_back(server);
  }
  return servers;
}

}  // namespace lockstep::chief
