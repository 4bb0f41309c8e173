#include "chief/shard_group.h"

#include <numeric>
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

absl::StatusOr<uint64_t> ShardGroup::TakeEpoch() {
  uint64_t newest = epoch_;
  for (int i = size() - 1; i >= 0; --i) {
    absl::StatusOr<uint64_t> epoch = servers_[i]->TakeEpoch(newest);
    if (!epoch.ok()) return Named(i, epoch.status());
    newest = *epoch;
  }
  epoch_ = newest;
  for (ShardCalls* client : servers_) client->set_epoch(newest);
  return newest;
}

absl::StatusOr<ShardGroup::Found> ShardGroup::Create(
    const JobConfig& job, const Plan& plan, ShardCalls::State state,
    const OnWorking& on_working) {
  std::vector<std::vector<PlannedPart>> parts(servers_.size());
  for (const PlannedPart& part : plan.parts) parts[part.server].push_back(part);
  Found found{{plan, {}, {}}, std::vector<ServerReport>(servers_.size())};
  std::vector<int> left(servers_.size());
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    for (const int i : std::exchange(left, {})) {
      absl::StatusOr<ShardCalls::Created> created =
          servers_[i]->CreateShard(job, plan, parts[i], state);
      if (!created.ok()) return Named(i, created.status());
      if (created->working.has_value()) {
        LOCKSTEP_RETURN_IF_ERROR(on_working(i, *created->working));
        left.push_back(i);
        continue;
      }
      found.map.slots = std::move(created->slots);
      found.map.scalars = std::move(created->scalars);
      found.reports[i] = created->report;
    }
  }
  return found;
}

absl::StatusOr<std::vector<float>> ShardGroup::Restore(
    const CheckpointReader& checkpoint, const StateMap& map) {
  return RestoreCheckpoint(checkpoint, map, Access());
}

absl::Status ShardGroup::Activate(const ShardCalls::Opening& opening) {
  for (int i = size() - 1; i >= 0; --i) {
    LOCKSTEP_RETURN_IF_ERROR(Named(i, servers_[i]->Activate(opening)));
  }
  return absl::OkStatus();
}

absl::StatusOr<JobSnapshot> ShardGroup::BeginSnapshot(int64_t step,
                                                      int64_t attempt) {
  JobSnapshot all;
  for (int i = 0; i < size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        Named(i, servers_[i]->CommitAndWait(step, attempt)));
    absl::StatusOr<ShardSnapshot> snapshot = servers_[i]->BeginSnapshot();
    if (!snapshot.ok()) return Named(i, snapshot.status());
    if (snapshot->global_step != step) {
      return absl::InternalError(absl::StrCat(
          "ps ", i, " is at step ", snapshot->global_step, ", not ", step));
    }
    // A server without parts has none; ps 0 always has a part.
    if (i == 0) all.scalars = std::move(snapshot->scalars);
    all.rows.push_back(std::move(snapshot->rows));
  }
  return all;
}

void ShardGroup::EndSnapshot() {
  // A snapshot that stays is replaced by the next one.
  for (ShardCalls* client : servers_) client->EndSnapshot().IgnoreError();
}

absl::StatusOr<ShardCalls::Expired> ShardGroup::ExpireWorker(
    int worker, uint64_t incarnation, const std::string& reason) {
  absl::StatusOr<ShardCalls::Expired> expired =
      servers_[0]->ExpireWorker(worker, incarnation, reason, 0, 0);
  if (!expired.ok()) return Named(0, expired.status());
  for (int i = 1; i < size(); ++i) {
    absl::StatusOr<ShardCalls::Expired> other = servers_[i]->ExpireWorker(
        worker, expired->incarnation, reason, expired->step, expired->attempt);
    if (!other.ok()) return Named(i, other.status());
  }
  return expired;
}

absl::StatusOr<ShardCalls::Replaced> ShardGroup::ReplaceMember(
    int worker, int64_t step, int64_t attempt, const std::string& reason) {
  absl::StatusOr<ShardCalls::Replaced> replaced =
      servers_[0]->ReplaceMember(worker, step, attempt, reason);
  if (!replaced.ok()) return Named(0, replaced.status());
  for (int i = 1; i < size() && replaced->by.has_value(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(Named(
        i,
        servers_[i]
            ->ReplaceMember(worker, replaced->step, replaced->attempt, reason)
            .status()));
  }
  return replaced;
}

std::vector<ShardAccess*> ShardGroup::Access() {
  std::vector<ShardAccess*> access;
  for (ShardCalls* client : servers_) access.push_back(client);
  return access;
}

}  // namespace lockstep
