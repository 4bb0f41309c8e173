#include "chief/steps/sync_loop.h"

#include <algorithm>

namespace lockstep::chief {

SyncLoop::SyncLoop(int num_servers, int64_t global_step)
    : step_(global_step), prepared_(num_servers) {}

SyncLoop::Actions SyncLoop::Begin() {
  phase_ = Phase::kTaking;
  std::fill(prepared_.begin(), prepared_.end(), std::nullopt);
  Actions actions;
  actions.takes = Unprepared();
  return actions;
}

SyncLoop::Actions SyncLoop::OnPrepared(int server, int64_t step,
                                       int64_t attempt) {
  if (phase_ != Phase::kTaking || step != step_) return {};
  prepared_[server] = attempt;
  return Decide();
}

SyncLoop::Actions SyncLoop::OnTakeAgain(int server, int64_t step) {
  Actions actions;
  if (phase_ == Phase::kTaking && step == step_ &&
      !prepared_[server].has_value()) {
    actions.takes.push_back(server);
  }
  return actions;
}

SyncLoop::Actions SyncLoop::Decide() {
  Actions actions;
  if (!Unprepared().empty()) return actions;
  int64_t newest = 0;
  for (const auto& attempt : prepared_) newest = std::max(newest, *attempt);
  for (size_t server = 0; server < prepared_.size(); ++server) {
    if (*prepared_[server] == newest) continue;
    // It answered for a set that has been given up since.
    prepared_[server] = std::nullopt;
    actions.takes.push_back(static_cast<int>(server));
  }
  if (actions.takes.empty()) {
    phase_ = Phase::kCommitting;
    actions.commit = CommitAction{step_ + 1, newest};
  }
  return actions;
}

SyncLoop::Actions SyncLoop::OnAttempt(int64_t attempt) {
  Actions actions;
  if (phase_ != Phase::kTaking) return actions;
  for (size_t server = 0; server < prepared_.size(); ++server) {
    if (prepared_[server].value_or(attempt) >= attempt) continue;
    prepared_[server] = std::nullopt;
    actions.takes.push_back(static_cast<int>(server));
  }
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
  for (size_t server = 0; server < prepared_.size(); ++server) {
    if (!prepared_[server].has_value()) {
      servers.push_back(static_cast<int>(server));
    }
  }
  return servers;
}

}  // namespace lockstep::chief
