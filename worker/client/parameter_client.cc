#include "worker/client/parameter_client.h"

#include "common/base/status_macros.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/exchange/token_answer.h"
#include "worker/client/mapped_servers.h"
#include "worker/client/pulls.h"
#include "worker/client/pushes.h"
#include "worker/client/server_links.h"
#include "worker/client/sync_client.h"

namespace lockstep::worker {

// Members are destroyed in reverse order: each one borrows some of those above
// it, and its calls must have ended before they do.
struct ParameterClient::Parts {
  Parts(const Options& options, const Plan& plan, ParameterMemory& memory)
      : links({options.servers, options.self, options.pollers,
               options.connections}),
        chunks(plan, memory, links.num_servers(),
               static_cast<size_t>(options.max_part_bytes)),
        mapped(links, chunks, memory, options.mirror,
               options.shares_with_mirror_alone),
        sync(links.channel(0), options.self),
        pulls(links, chunks, mapped, memory, options.mirror),
        pushes(links, chunks, mapped, sync, memory, options.gradient_type) {}

  ServerLinks links;
  HeldChunks chunks;
  MappedServers mapped;
  SyncClient sync;
  Pulls pulls;
  Pushes pushes;
};

ParameterClient::ParameterClient(const Options& options, const Plan& plan,
                                 ParameterMemory& memory)
    : untrained_(options.untrained),
      brings_values_(!options.mirror.has_value() && !options.mean_is_limited),
      parts_(std::make_unique<Parts>(options, plan, memory)) {}

// Pushes waits for its calls, which would be repeated without end if a server
// is gone: they must be cancelled first.
ParameterClient::~ParameterClient() { Cancel(); }

void ParameterClient::Cancel() {
  parts_->sync.Cancel();
  parts_->links.Cancel();
}

absl::StatusOr<int64_t> ParameterClient::Pull(int64_t step) {
  // Chunks must not be cut anew while a push refers to them by index; a push
  // under way postpones that to the next pull.
  if (!parts_->pushes.under_way()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool cut, parts_->mapped.Open());
    if (cut) parts_->pushes.OnNewChunks();
  }
  parts_->chunks.RouteTables();
  return parts_->pulls.Pull(step);
}

absl::StatusOr<int64_t> ParameterClient::PullAgain(int64_t step,
                                                   PulledAgain what) {
  parts_->chunks.RouteTables();
  return parts_->pulls.Pull(step, what == PulledAgain::kRows
                                      ? HeldChunks::Among::kTables
                                      : HeldChunks::Among::kTablesAndTaken);
}

void ParameterClient::BeginPass(const PassId& pass, PassKind kind, bool watch) {
  parts_->pushes.BeginPass(kind);
  if (watch) parts_->sync.Watch(pass);
}

bool ParameterClient::StepIsOver() const { return parts_->sync.StepIsOver(); }

void ParameterClient::GradientReady(size_t variable) {
  if (variable < untrained_.size() && untrained_[variable]) {
    parts_->pushes.GradientAbsent(variable);
  }
  parts_->pushes.GradientReady(variable);
}

void ParameterClient::GradientAbsent(size_t variable) {
  parts_->pushes.GradientAbsent(variable);
}

absl::StatusOr<Announcement> ParameterClient::Announce(const PassId& pass) {
  return parts_->sync.Announce(pass);
}

void ParameterClient::BeginPush(const PassId& pass, int64_t attempt) {
  parts_->pushes.BeginPush({pass, attempt});
}

absl::StatusOr<PushCounts> ParameterClient::Push(const PassId& pass,
                                                 int64_t attempt) {
  return parts_->pushes.Push({pass, attempt});
}

void ParameterClient::SendRest(const PassId& pass, int64_t attempt) {
  parts_->pushes.SendRest({pass, attempt});
}

absl::Status ParameterClient::AwaitValues(size_t first, size_t count) {
  return parts_->pushes.AwaitValues(first, count);
}

absl::StatusOr<Token> ParameterClient::TakeToken(const PassId& pass,
                                                 int64_t attempt) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Token token,
                            parts_->sync.TakeToken({pass, attempt}));
  SettleValues(token, parts_->chunks);
  return token;
}

}  // namespace lockstep::worker
