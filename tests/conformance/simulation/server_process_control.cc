// The part of ServerProcess that a chief calls.

#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "server/shard/step_progress.h"
#include "server/step/longest_waits.h"
#include "tests/conformance/simulation/server_process.h"

namespace lockstep::simulation {
namespace {

// Returns the parts that a server has, as the chief describes them to it.
std::vector<server::PartSpec> SpecsOf(const std::vector<Part>& planned,
                                      int holder, bool mirrored) {
  std::vector<server::PartSpec> specs;
  for (const Part& part : planned) {
    if (part.server != holder && !mirrored) continue;
    specs.push_back({part.variable, part.offset, part.count, DType::kFloat32});
    if (part.server != holder) specs.back().reducer = part.server;
  }
  return specs;
}

}  // namespace

absl::StatusOr<uint64_t> ServerProcess::TakeEpoch(
    const server::ChiefCommands::Chief& chief, uint64_t newer_than) {
  if (fault_ == Fault::kDiskIsFull) {
    return absl::ResourceExhaustedError("the disk is full");
  }
  const auto epoch =
      control_.TakeEpoch(chief.job_id, newer_than, chief.incarnation);
  if (epoch.ok()) job_.promises.OnEpoch(server_, *epoch, chief.incarnation);
  return epoch;
}

absl::StatusOr<chief::ServerReport> ServerProcess::CreateShard(
    const server::ChiefCommands::Chief& chief, const std::vector<Part>& planned,
    bool discard) {
  const server::ChiefCommands::Chief taken_for = ChiefOf(chief);
  LOCKSTEP_RETURN_IF_ERROR(
      Obeyed(chief, host_.FollowChief(taken_for.job_id, taken_for.epoch,
                                      taken_for.incarnation)));
  if (fault_ == Fault::kDamaged) {
    return absl::DataLossError("the state is damaged");
  }
  const std::vector<server::PartSpec> parts =
      SpecsOf(planned, server_, job_.plan.mirrored);
  const bool reopened = shard() == nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<server::Shard> made,
      host_.Create(job_.config, job_.variables, parts,
                   discard ? server::ShardHost::Keep::kNothing
                           : server::ShardHost::Keep::kState,
                   [this] { LetGo(); }));
  // One that was delayed finds what the first one has made.
  if (discard && !made->active()) job_.promises.OnDiscard(server_);
  server::Shard::Report report = made->GetReport();
  if (job_.Has(PlantedBug::kInitialisedAnew) && reopened && !discard &&
      report.committed_step > 0 && !parts.empty()) {
    made.reset();
    LOCKSTEP_ASSIGN_OR_RETURN(made,
                              host_.Create(job_.config, job_.variables, parts,
                                           server::ShardHost::Keep::kNothing));
    LOCKSTEP_RETURN_IF_ERROR(made->state().Activate(report.committed_step, {}));
    report = made->GetReport();
  }
  report.active |= job_.Has(PlantedBug::kHalfAStepIsKept) && reopened &&
                   report.committed_step >= 0;
  return chief::ServerReport{!parts.empty(),        report.active,
                             report.committed_step, report.prepared_step,
                             made->settings(),      report.attempt,
                             host_.Standings(),     report.opened_epoch};
}

absl::StatusOr<bool> ServerProcess::WriteParts(
    const server::ChiefCommands::Chief& chief,
    const std::vector<PartState>& parts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(chief)));
  job_.promises.OnObeyed(server_, chief.epoch, chief.incarnation);
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
    const server::ChiefCommands::Chief& chief,
    const chief::ShardCalls::Opening& opening) {
  chief::ShardCalls::Opening changed = opening;
  if (server_ > 0 && job_.Has(PlantedBug::kRateOfOneServerStays)) {
    changed.settings.learning_rate_scale = 1;
  }
  if (server_ == 0 && job_.Has(PlantedBug::kSetKeepsItsSize)) {
    changed.settings.replicas_to_aggregate = job_.options.replicas_to_aggregate;
  }
  absl::StatusOr<server::ChiefCommands::Ready> ready =
      control_.Activate(ChiefOf(chief), changed);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(chief, ready.status()));
  job_.promises.OnActivate(server_, chief.epoch);
  job_.compatible.OnSettings(server_, opening.settings);
  if (server_ == 0) job_.promises.OnSettings(opening.settings);
  Send(*std::move(ready));
  return true;
}

void ServerProcess::PlantInTake(server::ChiefCommands::TakeOrder& order) {
  server::Shard* open = shard();
  if (open == nullptr) return;
  const server::Engine::Arrivals arrivals = open->engine().arrivals();
  if (job_.Has(PlantedBug::kNormIsNotAwaited)) {
    if (order.norm.has_value()) last_norm_ = order.norm->norm;
    if (last_norm_.has_value()) {
      order.norm = MeanNorm{arrivals.attempt, *last_norm_};
    }
  }
  if (job_.Has(PlantedBug::kNormOfOneServer) && order.norm.has_value()) {
    order.norm->norm = last_squares_;
  }
}

void ServerProcess::Take(const server::ChiefCommands::Chief& chief,
                         const server::ChiefCommands::TakeOrder& ordered,
                         const World::Reply<chief::TakeResult>& reply) {
  server::ChiefCommands::TakeOrder order = ordered;
  PlantInTake(order);
  const uint64_t ticket = ++tickets_;
  takes_[ticket] = reply;
  absl::StatusOr<server::ChiefCommands::Ready> ready =
      control_.Take(ChiefOf(chief), ticket, order);
  if (absl::Status status = Obeyed(chief, ready.status()); !status.ok()) {
    takes_.erase(ticket);
    return reply(status);
  }
  job_.world.AfterFor(number_, server::kLongestTake,
                      [this, ticket] { AnswerLateTake(ticket); });
  Send(*std::move(ready));
  // Not before the take waits: it is to be told.
  if (news_.MayBeNews(lost_.Workers(job_.world.Now()))) {
    job_.world.AfterFor(number_, server::kLookForOldCalls,
                        [this] { TellOfLost(); });
  }
}

void ServerProcess::AnswerLateTake(uint64_t ticket) {
  auto call = takes_.extract(ticket);
  if (call.empty()) return;
  chief::TakeResult late;
  if (server::Shard* open = shard(); open != nullptr) {
    open->engine().CancelTake(ticket);
    server::StepProgress progress = server::ProgressOf(*open);
    late.attempt = progress.arrivals.attempt;
    late.waits_for = std::move(progress.waits_for);
    late.open_parts = progress.arrivals.open_parts;
    late.pushed = std::move(progress.arrivals.parts);
    late.lost_workers = lost_.Workers(job_.world.Now());
    late.announced_workers = std::move(progress.members);
  }
  call.mapped()(late);
}

void ServerProcess::TellOfLost() {
  std::vector<int> lost = lost_.Workers(job_.world.Now());
  server::Shard* open = shard();
  if (takes_.empty() || !news_.MayBeNews(lost) || open == nullptr) return;
  if (!news_.TakeNews(*open, std::move(lost))) return;
  while (!takes_.empty()) AnswerLateTake(takes_.begin()->first);
}

absl::StatusOr<int64_t> ServerProcess::Commit(
    const server::ChiefCommands::Chief& chief, int64_t step, int64_t attempt,
    const std::vector<std::vector<int>>& contributors) {
  absl::StatusOr<server::ChiefCommands::Committed> committed =
      control_.Commit(ChiefOf(chief), step, attempt, contributors);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(chief, committed.status()));
  Send(std::move(committed->ready));
  return committed->redone_attempt;
}

absl::StatusOr<chief::ShardCalls::Expired> ServerProcess::ExpireWorker(
    const server::ChiefCommands::Chief& chief, int worker, uint64_t incarnation,
    int64_t step, int64_t attempt, bool input_ended) {
  if (job_.Has(PlantedBug::kDeadWorkerKeepsItsPlace)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                              control_.CheckedShard(ChiefOf(chief)));
    return chief::ShardCalls::Expired{false, false, open->engine().step(),
                                      open->engine().arrivals().attempt,
                                      incarnation};
  }
  absl::StatusOr<server::ChiefCommands::Expired> expired =
      control_.ExpireWorker(ChiefOf(chief), worker, incarnation, step, attempt,
                            input_ended);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(chief, expired.status()));
  Send(std::move(expired->ready));
  return *expired;
}

absl::StatusOr<chief::ShardCalls::Replaced> ServerProcess::ReplaceMember(
    const server::ChiefCommands::Chief& chief, int worker, int64_t step,
    int64_t attempt) {
  absl::StatusOr<server::ChiefCommands::Replaced> replaced =
      control_.ReplaceMember(ChiefOf(chief), worker, step, attempt);
  LOCKSTEP_RETURN_IF_ERROR(Obeyed(chief, replaced.status()));
  if (replaced->by.has_value()) ++job_.tally.replaced;
  Send(std::move(replaced->ready));
  return *replaced;
}

absl::StatusOr<chief::ShardSnapshot> ServerProcess::BeginSnapshot(
    const server::ChiefCommands::Chief& chief) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.WithdrawGrant(ChiefOf(chief)));
  job_.promises.OnObeyed(server_, chief.epoch, chief.incarnation);
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t step, open->BeginSnapshot());
  return chief::ShardSnapshot{step, {}};
}

absl::StatusOr<std::vector<PartState>> ServerProcess::ReadSnapshot(
    const server::ChiefCommands::Chief& chief, int64_t step) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(chief)));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto snapshot, open->snapshot());
  if (snapshot->step() != step) {
    return absl::UnavailableError("it was replaced");
  }
  std::vector<PartState> parts(open->state().num_parts());
  for (size_t part = 0; part < parts.size(); ++part) {
    for (int tensor = 0; tensor < 2; ++tensor) {
      float& value = tensor == 0 ? parts[part].value : parts[part].momentum;
      const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(&value),
                                        sizeof(value));
      LOCKSTEP_RETURN_IF_ERROR(snapshot->Read(
          {static_cast<int>(part), 1, 0, sizeof(value)}, tensor, bytes));
    }
  }
  return parts;
}

absl::StatusOr<bool> ServerProcess::CloseTokens(
    const server::ChiefCommands::Chief& chief) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto open,
                            control_.CheckedShard(ChiefOf(chief)));
  job_.promises.OnObeyed(server_, chief.epoch, chief.incarnation);
  SendTokens(open->gate()->Finish());
  return true;
}

}  // namespace lockstep::simulation
