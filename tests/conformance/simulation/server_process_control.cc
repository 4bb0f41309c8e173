// The part of ServerProcess that a chief calls.

#include <cstring>
#include <utility>

#include "common/status_macros.h"
#include "tests/conformance/simulation/server_process.h"

namespace lockstep::simulation {
namespace {

constexpr absl::Duration kLongestTake = absl::Seconds(1);

}  // namespace

absl::StatusOr<uint64_t> ServerProcess::TakeEpoch(uint64_t newer_than) {
  const auto epoch = control_.TakeEpoch(job_.id, newer_than);
  if (epoch.ok()) job_.promises.OnEpoch(server_, *epoch);
  return epoch;
}

absl::StatusOr<ServerReport> ServerProcess::CreateShard(uint64_t epoch,
                                                        bool discard) {
  LOCKSTEP_RETURN_IF_ERROR(
      Obeyed(epoch, host_.CheckChief(job_.id, ChiefOf(epoch).epoch)));
  std::vector<PartSpec> parts;
  for (const PlannedPart& part : job_.plan.parts) {
    if (part.server != server_) continue;
    parts.push_back({part.variable, part.offset, part.count, DType::kFloat32});
  }
  if (discard) {
    CancelWaits();
  }

  const bool reopened = shard() == nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> made,
                            host_.Create(job_.config, job_.variables, parts,
                                         discard ? ShardHost::Keep::kNothing
                                                 : ShardHost::Keep::kState));
  // One that was delayed finds what the first one has made.
  if (discard && !made->active()) job_.promises.OnDiscard(server_);
  Shard::Report report = made->GetReport();
  if (job_.Has(PlantedBug::kInitialisedAnew) && reopened && !discard &&
      report.committed_step > 0 && !parts.empty()) {
    made.reset();
    LOCKSTEP_ASSIGN_OR_RETURN(made,
                              host_.Create(job_.config, job_.variables, parts,
                                           ShardHost::Keep::kNothing));
    LOCKSTEP_RETURN_IF_ERROR(made->state().Activate(report.committed_step, {}));
    report = made->GetReport();
  }
  return ServerReport{!parts.empty(),        report.active,
                      report.committed_step, report.prepared_step,
                      made->settings(),      report.attempt};
}

absl::StatusOr<bool> ServerProcess::WriteParts(
    uint64_t epoch, const std::vector<PartState>& parts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(epoch)));
  job_.promises.OnObeyed(server_, epoch);
  for (size_t part = 0; part < parts.size(); ++part) {
    for (int tensor = 0; tensor < 2; ++tensor) {
      const float value =
          tensor == 0 ? parts[part].value : parts[part].momentum;
      const absl::Span<const std::byte> bytes(
          reinterpret_cast<const std::byte*>(&value), sizeof(value));
      LOCKSTEP_RETURN_IF_ERROR(
          open->state().Write(static_cast<int>(part), tensor, 0, bytes));
    }
  }
  return true;
}

absl::StatusOr<bool> ServerProcess::Activate(
    uint64_t epoch, const ShardCalls::Opening& opening) {
  absl::StatusOr<StepControl::Ready> ready = control_.Activate(
      ChiefOf(epoch), {opening.global_step, opening.scalars, opening.attempt,
                       opening.expired, opening.settings});
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(epoch, ready.status()));
  Send(*std::move(ready));
  return true;
}

void ServerProcess::Take(uint64_t epoch, int64_t step, int64_t commit_until,
                         int64_t attempt,
                         const World::Reply<TakeReply>& reply) {
  const uint64_t ticket = ++tickets_;
  takes_[ticket] = reply;
  absl::StatusOr<StepControl::Ready> ready =
      control_.Take(ChiefOf(epoch), ticket, step, commit_until, attempt);
  if (absl::Status status = Obeyed(epoch, ready.status()); !status.ok()) {
    takes_.erase(ticket);
    return reply(status);
  }
  job_.world.AfterFor(number_, kLongestTake, [this, ticket] {
    auto call = takes_.extract(ticket);
    Shard* open = shard();
    if (call.empty() || open == nullptr) return;
    open->engine().CancelTake(ticket);
    TakeReply late;
    late.arrivals = open->engine().arrivals();
    late.attempt = late.arrivals.attempt;
    if (open->gate() != nullptr) late.members = open->gate()->Members();
    call.mapped()(late);
  });
  Send(*std::move(ready));
}

absl::StatusOr<bool> ServerProcess::Commit(uint64_t epoch, int64_t step,
                                           int64_t attempt) {
  absl::StatusOr<StepControl::Committed> committed =
      control_.Commit(ChiefOf(epoch), step, attempt);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(epoch, committed.status()));
  Send(std::move(committed->ready));
  return true;
}

absl::StatusOr<ShardCalls::Expired> ServerProcess::ExpireWorker(
    uint64_t epoch, int worker, uint64_t incarnation, int64_t step,
    int64_t attempt) {
  if (job_.Has(PlantedBug::kDeadWorkerKeepsItsPlace)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                              control_.CheckedShard(ChiefOf(epoch)));
    return ShardCalls::Expired{false, false, open->engine().step(),
                               open->engine().arrivals().attempt, incarnation};
  }
  absl::StatusOr<StepControl::Expired> expired =
      control_.ExpireWorker(ChiefOf(epoch), worker, incarnation, step, attempt);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(epoch, expired.status()));
  Send(std::move(expired->ready));
  return ShardCalls::Expired{expired->held_announcement, expired->held_token,
                             expired->step, expired->attempt,
                             expired->incarnation};
}

absl::StatusOr<ShardCalls::Replaced> ServerProcess::ReplaceMember(
    uint64_t epoch, int worker, int64_t step, int64_t attempt) {
  absl::StatusOr<StepControl::Replaced> replaced =
      control_.ReplaceMember(ChiefOf(epoch), worker, step, attempt);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(epoch, replaced.status()));
  Send(std::move(replaced->ready));
  ShardCalls::Replaced answer{std::nullopt, replaced->step, replaced->attempt};
  if (replaced->by >= 0) answer.by = replaced->by;
  return answer;
}

absl::StatusOr<ShardSnapshot> ServerProcess::BeginSnapshot(uint64_t epoch) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(epoch)));
  job_.promises.OnObeyed(server_, epoch);
  open->Grant(0);
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t step, open->BeginSnapshot());
  return ShardSnapshot{step, {}};
}

absl::StatusOr<std::vector<PartState>> ServerProcess::ReadSnapshot(
    uint64_t epoch, int64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(epoch)));
  std::vector<PartState> parts(job_.options.parts[server_]);
  for (size_t part = 0; part < parts.size(); ++part) {
    for (int tensor = 0; tensor < 2; ++tensor) {
      float& value = tensor == 0 ? parts[part].value : parts[part].momentum;
      const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(&value),
                                        sizeof(value));
      LOCKSTEP_ASSIGN_OR_RETURN(
          const int64_t has,
          open->ReadSnapshot({static_cast<int>(part), 1, 0, sizeof(value)},
                             tensor, bytes));
      if (has != step) return absl::UnavailableError("it was replaced");
    }
  }
  return parts;
}

absl::StatusOr<bool> ServerProcess::CloseTokens(uint64_t epoch) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(epoch)));
  job_.promises.OnObeyed(server_, epoch);
  SendTokens(open->gate()->Finish());
  return true;
}

}  // namespace lockstep::simulation
