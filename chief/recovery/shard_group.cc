#include "chief/recovery/shard_group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/finite_values.h"
#include "chief/checkpoint/initial_values_text.h"
#include "common/base/status_macros.h"
#include "common/job/variable_settings.h"
#include "common/wire/incarnation_bounds.h"
#include "common/wire/status_detail.h"

namespace lockstep::chief {
namespace {

// Each server may know a different newer chief.
constexpr int kMaxTries = 10;

// Servers agree on the scalars of the whole job. A scalar of a variable is 0 on
// a server without a part of it. A server without parts reports no scalars; ps
// 0 has a part: see PlanOfJob().
absl::StatusOr<std::vector<float>> MergeScalars(
    const std::vector<std::optional<ShardSnapshot>>& snapshots) {
  std::vector<float> merged = snapshots[0]->scalars;
  for (size_t i = 1; i < snapshots.size(); ++i) {
    if (!snapshots[i].has_value()) continue;  // it takes no part
    const std::vector<float>& scalars = snapshots[i]->scalars;
    if (scalars.empty()) continue;
    if (scalars.size() != merged.size()) {
      return absl::InternalError(
          absl::StrCat("ps ", i, " has ", scalars.size(),
                       " optimizer scalars, and ps 0 has ", merged.size()));
    }
    for (size_t k = 0; k < merged.size(); ++k) {
      // Servers with a part of a variable agree, and all others report 0.
      merged[k] = std::max(merged[k], scalars[k]);
    }
  }
  return merged;
}

// False if the error says that there is a newer chief.
bool IsOfServerAlone(const absl::Status& error) {
  return !absl::IsAborted(error) && NewestIncarnationOf(error) == 0;
}

}  // namespace

absl::Status ShardGroup::Named(int server, const absl::Status& status) {
  const std::string name = absl::StrCat("ps ", server);
  // Many messages of servers begin with their names.
  if (status.ok() || absl::StartsWith(status.message(), name + " ")) {
    return status;
  }
  return WithMessage(status, absl::StrCat(name, ": ", status.message()));
}

absl::StatusOr<uint64_t> ShardGroup::TakeEpoch(Failures* failed) {
  absl::StatusOr<uint64_t> epoch = DrawEpoch(failed);
  // Only before the first epoch: later, a newer incarnation belongs to a chief
  // that has taken over.
  for (int tries = 0; tries < kMaxTries && epoch_ == 0; ++tries) {
    const uint64_t newest = NewestIncarnationOf(epoch.status());
    // Another error, or nothing can be drawn above it.
    if (newest == 0 || newest >= kLargestIncarnation) break;
    const uint64_t drawn = draw_(newest);
    for (ShardCalls* client : servers_) client->set_incarnation(drawn);
    epoch = DrawEpoch(failed);
  }
  return epoch;
}

absl::StatusOr<uint64_t> ShardGroup::DrawEpoch(Failures* failed) {
  std::vector<uint64_t> epochs(servers_.size(), epoch_);
  std::vector<absl::Status> failures(servers_.size());
  const auto draw = [&](int i, uint64_t newer_than) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(epochs[i], servers_[i]->TakeEpoch(newer_than));
    return absl::OkStatus();
  };
  // ps 0 last: its epoch is used for all servers, so it must be above those of
  // the others.
  LOCKSTEP_RETURN_IF_ERROR(AskFrom(1, [&](int i) {
    const absl::Status status = draw(i, epoch_);
    if (failed == nullptr || !IsOfServerAlone(status)) return status;
    failures[i] = Named(i, status);
    return absl::OkStatus();
  }));
  for (size_t i = 0; i < failures.size(); ++i) {
    if (failures[i].ok()) continue;
    std::erase(used_, static_cast<int>(i));
    failed->emplace(static_cast<int>(i), failures[i]);
  }
  const uint64_t newest = *std::max_element(epochs.begin(), epochs.end());
  LOCKSTEP_RETURN_IF_ERROR(Named(0, draw(0, newest)));
  epoch_ = epochs[0];
  for (ShardCalls* client : servers_) client->set_epoch(epoch_);
  return epoch_;
}

absl::StatusOr<ShardGroup::Found> ShardGroup::Create(
    const JobConfig& job, const Plan& plan, ShardCalls::State state,
    const OnWorking& on_working, Failures* failed) {
  Found found{{plan, {}, {}}, std::vector<ServerReport>(servers_.size())};
  std::vector<ShardCalls::Created> created(servers_.size());
  std::vector<absl::Status> failures(servers_.size());  // that end no call
  std::vector<bool> done(servers_.size(), true);
  for (ServerReport& report : found.reports) report.takes_part = false;
  for (const int server : used_) done[server] = false;
  // In turns: a call begins, or looks after, work that a server does in the
  // background, so all servers work at the same time.
  while (std::find(done.begin(), done.end(), false) != done.end()) {
    LOCKSTEP_RETURN_IF_ERROR(AskFrom(0, [&](int i) -> absl::Status {
      if (done[i]) return absl::OkStatus();
      absl::StatusOr<ShardCalls::Created> answer =
          servers_[i]->CreateShard(job, plan, i, state);
      const absl::Status status = answer.status();
      if (answer.ok()) {
        created[i] = *std::move(answer);
      } else if (failed == nullptr || i == 0 || !IsOfServerAlone(status)) {
        return status;
      } else {
        failures[i] = Named(i, status);
      }
      return absl::OkStatus();
    }));
    for (size_t i = 0; i < done.size(); ++i) {
      if (done[i]) continue;
      if (!failures[i].ok()) {
        done[i] = true;
        failed->emplace(static_cast<int>(i), failures[i]);
        continue;
      }
      if (created[i].working.has_value()) {
        LOCKSTEP_RETURN_IF_ERROR(
            on_working(static_cast<int>(i), *created[i].working));
        continue;
      }
      done[i] = true;
      // Every server describes the whole model, so the answers are equal.
      found.map.slots = std::move(created[i].slots);
      found.map.scalars = std::move(created[i].scalars);
      found.reports[i] = created[i].report;
    }
  }
  return found;
}

absl::Status ShardGroup::CopyState(const JobConfig& job, const StateMap& map,
                                   int donor, const std::vector<int>& to,
                                   const OnWorking& on_working,
                                   const OnTransferred& on_transferred,
                                   ShardCalls::Opening& opening,
                                   Failures* failed) {
  ShardCalls& from = *servers_[donor];
  // The donor may have prepared the step without committing it: it is opened
  // first, so that its copy is of that step.
  LOCKSTEP_RETURN_IF_ERROR(Named(donor, from.Activate(opening)));
  absl::StatusOr<ShardSnapshot> snapshot =
      from.BeginSnapshot(opening.global_step);
  if (!snapshot.ok()) return Named(donor, snapshot.status());
  const absl::Status filled =
      snapshot->global_step == opening.global_step
          ? Fill(job, map, from, to, on_working, on_transferred, failed)
          : absl::UnavailableError(absl::StrCat(
                "ps ", donor, " is at step ", snapshot->global_step,
                ", not at ", opening.global_step, ", any more"));
  // Also after an error: the snapshot is as large as the state, and the next
  // round may have no use for it.
  const absl::Status released = Named(donor, from.EndSnapshot());
  LOCKSTEP_RETURN_IF_ERROR(filled);
  opening.scalars = snapshot->scalars;
  return released;
}

absl::Status ShardGroup::Fill(const JobConfig& job, const StateMap& map,
                              ShardCalls& from, const std::vector<int>& to,
                              const OnWorking& on_working,
                              const OnTransferred& on_transferred,
                              Failures* failed) {
  std::vector<ShardCalls*> targets;
  for (const int server : to) {
    targets.push_back(servers_[server]);
    // State of this epoch is kept; older state is discarded.
    while (true) {
      const absl::StatusOr<ShardCalls::Created> created =
          servers_[server]->CreateShard(job, map.plan, server,
                                        ShardCalls::State::kDiscard);
      // No job goes on without mirror 0.
      if (!created.ok() && failed != nullptr && server != 0 &&
          IsOfServerAlone(created.status())) {
        failed->emplace(server, Named(server, created.status()));
      }
      LOCKSTEP_RETURN_IF_ERROR(created.status());
      if (!created->working.has_value()) break;
      LOCKSTEP_RETURN_IF_ERROR(on_working(server, *created->working));
    }
  }
  return Transfer(map, from, targets, on_transferred);
}

absl::Status ShardGroup::Transfer(const StateMap& map, ShardCalls& from,
                                  const std::vector<ShardCalls*>& to,
                                  const OnTransferred& on_transferred) {
  return chief::CopyState(map, from, {to.begin(), to.end()}, on_transferred);
}

absl::StatusOr<std::string> ShardGroup::WriteInitialValuesOf(
    const JobConfig& job, const StateMap& map,
    const OnTransferred& on_transferred) {
  const auto write = [&]() -> absl::StatusOr<std::string> {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const SafetensorsReader reader,
        SafetensorsReader::Open(job.checkpoint.initial_values));
    // A variable that keeps its value may have any, as a buffer may.
    std::vector<VariableSpec> updated = map.plan.variables;
    std::erase_if(updated, [&job](const VariableSpec& variable) {
      return IsUntrained(job, variable);
    });
    LOCKSTEP_RETURN_IF_ERROR(CheckFinite(reader, updated, on_transferred));
    LOCKSTEP_ASSIGN_OR_RETURN(const int found,
                              WriteInitialValues(reader, map, on_transferred));
    std::string text = InitialValuesText(reader, map.plan.variables);
    if (found > 0) return text;
    return absl::FailedPreconditionError(absl::StrCat(
        text,
        "; name a file with variables of this model, or leave the field out"));
  };
  absl::StatusOr<std::string> done = write();
  if (done.ok() || absl::IsCancelled(done.status())) return done;
  return absl::Status(
      done.status().code(),
      absl::StrCat("checkpoint.initial_values: ", done.status().message()));
}

absl::StatusOr<int> ShardGroup::WriteInitialValues(
    const SafetensorsReader& values, const StateMap& map,
    const OnTransferred& on_transferred) {
  return chief::WriteInitialValues(values, map, Access(), on_transferred);
}

absl::StatusOr<std::vector<float>> ShardGroup::Restore(
    const CheckpointReader& checkpoint, const StateMap& map,
    const OnTransferred& on_transferred) {
  return RestoreCheckpoint(checkpoint, map, Access(), on_transferred);
}

absl::Status ShardGroup::Activate(const ShardCalls::Opening& opening) {
  LOCKSTEP_RETURN_IF_ERROR(
      // ps 0 last: it hands out the first tokens, and workers then ask the
      // others for values.
      AskFrom(1, [&](int i) { return servers_[i]->Activate(opening); }));
  return Named(0, servers_[0]->Activate(opening));
}

absl::StatusOr<JobSnapshot> ShardGroup::BeginSnapshot(int64_t step,
                                                      int64_t attempt) {
  std::vector<std::optional<ShardSnapshot>> copies(servers_.size());
  absl::StatusOr<JobSnapshot> all = CopyAside(step, attempt, copies);
  if (all.ok()) return all;
  // Errors are ignored, as in EndSnapshot(). A server without a copy, which may
  // hang, is not called.
  AskFrom(0, [&](int i) {
    if (copies[i].has_value()) servers_[i]->EndSnapshot().IgnoreError();
    return absl::OkStatus();
  }).IgnoreError();
  return all;
}

absl::StatusOr<JobSnapshot> ShardGroup::CopyAside(
    int64_t step, int64_t attempt,
    std::vector<std::optional<ShardSnapshot>>& copies) {
  LOCKSTEP_RETURN_IF_ERROR(AskFrom(0, [&](int i) -> absl::Status {
    // The other servers may not know of the commit yet: no take has followed
    // it.
    LOCKSTEP_RETURN_IF_ERROR(servers_[i]->CommitAndWait(step, attempt));
    LOCKSTEP_ASSIGN_OR_RETURN(copies[i], servers_[i]->BeginSnapshot(step));
    if (copies[i]->global_step == step) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        "the snapshot is of step ", copies[i]->global_step, ", not ", step));
  }));
  JobSnapshot all;
  LOCKSTEP_ASSIGN_OR_RETURN(all.scalars, MergeScalars(copies));
  for (const auto& copy : copies) {
    all.rows.push_back(copy.value_or(ShardSnapshot()).rows);
  }
  return all;
}

void ShardGroup::EndSnapshot() {
  // Errors are ignored: a snapshot that stays is replaced by the next one.
  AskFrom(0, [&](int i) {
    servers_[i]->EndSnapshot().IgnoreError();
    return absl::OkStatus();
  }).IgnoreError();
}

absl::StatusOr<ShardCalls::Expired> ShardGroup::ExpireWorker(
    int worker, uint64_t incarnation, const std::string& reason) {
  absl::StatusOr<ShardCalls::Expired> expired =
      // ps 0 first: it says which attempt follows, which the others need to
      // begin it.
      servers_[0]->ExpireWorker(worker, incarnation, reason, 0, 0);
  if (!expired.ok()) return Named(0, expired.status());
  LOCKSTEP_RETURN_IF_ERROR(AskFrom(1, [&](int i) {
    return servers_[i]
        ->ExpireWorker(worker, expired->incarnation, reason, expired->step,
                       expired->attempt)
        .status();
  }));
  return expired;
}

absl::Status ShardGroup::AskThese(const std::vector<int>& servers, AskOne ask) {
  for (const int server : servers) {
    LOCKSTEP_RETURN_IF_ERROR(Named(server, ask(server)));
  }
  return absl::OkStatus();
}

absl::Status ShardGroup::AskFrom(int first, AskOne ask) {
  return AskThese(
      {std::lower_bound(used_.begin(), used_.end(), first), used_.end()}, ask);
}

std::vector<ShardAccess*> ShardGroup::Access() {
  std::vector<ShardAccess*> access(servers_.size());
  for (const int server : used_) access[server] = servers_[server];
  return access;
}

}  // namespace lockstep::chief
