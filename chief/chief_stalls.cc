// The part of Chief that looks for workers which hold up a step.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/chief.h"
#include "common/base/log.h"

namespace lockstep {
namespace {

// How long nobody is asked again who could not be replaced.
constexpr absl::Duration kReplacePause = absl::Seconds(1);

}  // namespace

void Chief::Hear(const TakeDone& done) {
  const v1::TakeAndApplyResponse& response = done.response;
  const absl::Time now = clock_.Now();
  server_waits_[done.server] =
      response.prepared() ? std::string() : response.waits_for();
  if (response.attempt() == 0) return;  // nothing to be told
  if (done.server == 0) {
    announced_.assign(response.announced_workers().begin(),
                      response.announced_workers().end());
    stalls_.OnSet(response.attempt(), announced_, now);
  }
  if (response.prepared()) {
    stalls_.OnPrepared(done.server);
    return;
  }
  StallWatch::Arrivals arrivals;
  arrivals.open_parts = response.open_parts();
  for (const v1::PushedParts& pushed : response.pushed()) {
    arrivals.pushed[pushed.worker()] = pushed.parts();
  }
  stalls_.OnArrivals(done.server, response.attempt(), std::move(arrivals), now);
}

void Chief::HearOfAttempt(int64_t step, int64_t attempt) {
  if (!loop_.has_value() || step != loop_->step()) return;
  stalls_.OnSet(attempt, {}, clock_.Now());
  Ask(loop_->OnAttempt(attempt));
}

void Chief::BeginAnew(const CommitDone& done) {
  for (size_t server = 1; server < contributors_.size(); ++server) {
    if (contributors_[server].empty() || contributors_[server] == announced_) {
      continue;
    }
    spdlog::warn(
        "step {}: ps {} has summed gradients of workers {}, but the set is {}: "
        "a worker pushes without being selected; the step begins anew",
        done.step, server, absl::StrJoin(contributors_[server], ", "),
        absl::StrJoin(announced_, ", "));
  }
  ++losses_.steps_redone;
  board_.SetLosses(losses_);
  contributors_.assign(servers_.size(), {});
  stalls_.OnSet(done.redone_attempt, {}, clock_.Now());
  Ask(loop_->OnCommitRefused());
}

void Chief::ReplaceStalled() {
  const absl::Time now = clock_.Now();
  const bool backups = job_.mode == SyncMode::kStrict &&
                       num_workers() > settings_.replicas_to_aggregate;
  if (!backups || now < replace_again_) return;
  const std::optional<int> worker = stalls_.Find(now, job_.stall_timeout);
  if (!worker.has_value()) return;
  replace_again_ = now + kReplacePause;
  const std::string reason = absl::StrCat(
      "no gradient of it came for ", absl::FormatDuration(job_.stall_timeout));
  const auto replaced =
      servers_.ReplaceMember(*worker, loop_->step(), stalls_.attempt(), reason);
  if (!replaced.ok()) {
    spdlog::warn("worker {} holds up step {}: {}; trying again", *worker,
                 loop_->step() + 1, replaced.status().message());
    return;
  }
  HearOfAttempt(replaced->step, replaced->attempt);
  if (!replaced->by.has_value()) return;  // nobody waits yet
  spdlog::warn("worker {} holds up step {} ({}); worker {} has its place",
               *worker, loop_->step() + 1, reason, *replaced->by);
}

}  // namespace lockstep
