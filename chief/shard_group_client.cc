#include "chief/shard_group_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status Named(int server, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("ps ", server, ": ", status.message()));
}

}  // namespace

ShardGroupClient::ShardGroupClient(const std::vector<std::string>& addresses,
                                   const Sender& chief) {
  for (const std::string& address : addresses) {
    clients_.push_back(std::make_unique<ShardControlClient>(address, chief));
  }
}

absl::StatusOr<uint64_t> ShardGroupClient::TakeEpoch() {
  uint64_t newest = epoch_;
  for (int i = size() - 1; i >= 0; --i) {
    absl::StatusOr<uint64_t> epoch = clients_[i]->TakeEpoch(newest);
    if (!epoch.ok()) return Named(i, epoch.status());
    newest = *epoch;
  }
  epoch_ = newest;
  for (auto& client : clients_) client->set_epoch(newest);
  return newest;
}

absl::StatusOr<ShardGroupClient::Found> ShardGroupClient::Create(
    const JobConfig& job, const Plan& plan, ShardControlClient::State state) {
  std::vector<std::vector<PlannedPart>> parts(clients_.size());
  for (const PlannedPart& part : plan.parts) parts[part.server].push_back(part);
  Found found{{plan, {}, {}}, {}};
  for (int i = 0; i < size(); ++i) {
    absl::StatusOr<ShardControlClient::Created> created =
        clients_[i]->CreateShard(job, plan, parts[i], state);
    if (!created.ok()) return Named(i, created.status());
    found.map.slots = std::move(created->slots);
    found.map.scalars = std::move(created->scalars);
    found.reports.push_back(created->report);
  }
  return found;
}

absl::StatusOr<std::vector<float>> ShardGroupClient::Restore(
    const CheckpointReader& checkpoint, const StateMap& map) {
  return RestoreCheckpoint(checkpoint, map, Access());
}

absl::Status ShardGroupClient::Activate(
    const ShardControlClient::Opening& opening) {
  for (int i = size() - 1; i >= 0; --i) {
    LOCKSTEP_RETURN_IF_ERROR(Named(i, clients_[i]->Activate(opening)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ShardGroupClient::BeginSnapshot(
    int64_t step, int64_t attempt) {
  std::vector<float> scalars;
  for (int i = 0; i < size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        Named(i, clients_[i]->CommitAndWait(step, attempt)));
    absl::StatusOr<ShardSnapshot> snapshot = clients_[i]->BeginSnapshot();
    if (!snapshot.ok()) return Named(i, snapshot.status());
    if (snapshot->global_step != step) {
      return absl::InternalError(absl::StrCat(
          "ps ", i, " is at step ", snapshot->global_step, ", not ", step));
    }
    // A server without parts has none; ps 0 always has a part.
    if (i == 0) scalars = std::move(snapshot->scalars);
  }
  return scalars;
}

void ShardGroupClient::EndSnapshot() {
  // A snapshot that stays is replaced by the next one.
  for (auto& client : clients_) client->EndSnapshot().IgnoreError();
}

absl::StatusOr<ShardControlClient::Expired> ShardGroupClient::ExpireWorker(
    int worker, uint64_t incarnation, const std::string& reason) {
  absl::StatusOr<ShardControlClient::Expired> expired =
      clients_[0]->ExpireWorker(worker, incarnation, reason, 0, 0);
  if (!expired.ok()) return Named(0, expired.status());
  for (int i = 1; i < size(); ++i) {
    absl::StatusOr<ShardControlClient::Expired> other =
        clients_[i]->ExpireWorker(worker, expired->incarnation, reason,
                                  expired->step, expired->attempt);
    if (!other.ok()) return Named(i, other.status());
  }
  return expired;
}

absl::StatusOr<ShardControlClient::Replaced> ShardGroupClient::ReplaceMember(
    int worker, int64_t step, int64_t attempt, const std::string& reason) {
  absl::StatusOr<ShardControlClient::Replaced> replaced =
      clients_[0]->ReplaceMember(worker, step, attempt, reason);
  if (!replaced.ok()) return Named(0, replaced.status());
  for (int i = 1; i < size() && replaced->by.has_value(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(Named(
        i,
        clients_[i]
            ->ReplaceMember(worker, replaced->step, replaced->attempt, reason)
            .status()));
  }
  return replaced;
}

std::vector<ShardAccess*> ShardGroupClient::Access() {
  std::vector<ShardAccess*> access;
  for (auto& client : clients_) access.push_back(client.get());
  return access;
}

}  // namespace lockstep
