#include "chief/checkpoint/job_checkpoints.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoint_transfer.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/step_directory.h"
#include "common/text/progress_text.h"

namespace lockstep::chief {
namespace {

// Prefixes of the names of directories that no longer count as checkpoints.
constexpr char kSetAside[] = "set-aside-";
constexpr char kDamaged[] = "damaged-";
// The time that processes of a killed run may need to end.
constexpr absl::Duration kOwnerPatience = absl::Seconds(3);
// Lines about one checkpoint that takes long are this far apart.
constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

JobCheckpoints::JobCheckpoints(const CheckpointConfig& config, Notify notify)
    : config_(config), notify_(std::move(notify)), store_(config.directory) {}

absl::Status JobCheckpoints::Own(const std::string& job_id) {
  if (none()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(
      DirectoryOwner owner,
      DirectoryOwner::Take(directory(), job_id, kOwnerPatience));
  owner_.emplace(std::move(owner));
  return absl::OkStatus();
}

absl::Status JobCheckpoints::Prepare(const Beginning& beginning) {
  if (!beginning.anew() || none()) return absl::OkStatus();
  if (beginning.step >= 0) {
    // Before anything is set aside: a damaged beginning must leave all as it
    // is.
    const absl::Status whole = whole_.Check(beginning.step);
    if (!whole.ok()) {
      return absl::Status(whole.code(), absl::StrCat("--from ", beginning.step,
                                                     ": ", whole.message()));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                            ListStepDirectories(directory()));
  for (const int64_t step : steps) {
    if (step <= beginning.step) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string path,
                              store_.SetAside(step, kSetAside));
    notify_(absl::StrCat("the checkpoint of step ", step,
                         " was set aside: ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> JobCheckpoints::LatestStep() const {
  if (none()) return -1;
  LOCKSTEP_ASSIGN_OR_RETURN(const LatestCheckpoint latest, store_.Latest());
  return latest.manifest.has_value() ? latest.manifest->global_step : -1;
}

std::optional<absl::Time> JobCheckpoints::SavedAt(int64_t step) const {
  if (none()) return std::nullopt;
  const absl::StatusOr<LatestCheckpoint> latest = store_.Latest();
  if (!latest.ok() || !latest->manifest.has_value() ||
      latest->manifest->global_step != step) {
    return std::nullopt;
  }
  return absl::FromUnixMillis(latest->manifest->saved_at_unix_ms);
}

std::optional<int64_t> JobCheckpoints::WholeFrom(int64_t step) {
  const int64_t latest = LatestStep().value_or(-1);
  if (latest < step || !whole_.Check(latest).ok()) return std::nullopt;
  return latest;
}

absl::StatusOr<int64_t> JobCheckpoints::FindNewest() {
  newest_.reset();
  if (none()) return -1;
  RemoveUnfinished();
  LOCKSTEP_ASSIGN_OR_RETURN(WholeCheckpoints::Newest newest,
                            whole_.FindNewest());
  newest_ = std::move(newest.reader);
  if (!newest_.has_value()) return -1;
  const int64_t step = newest_->manifest().global_step;
  for (const WholeCheckpoints::Damaged& damaged : newest.damaged) {
    const absl::StatusOr<std::string> path =
        store_.SetAside(damaged.step, kDamaged);
    notify_(absl::StrCat(
        "the checkpoint of step ", damaged.step,
        " is damaged and passed over (", damaged.why.message(), "); it ",
        path.ok() ? absl::StrCat("is now ", *path) : "stays where it is",
        ". The newest whole one is of step ", step, ", ", damaged.step - step,
        " steps before it"));
  }
  return step;
}

std::optional<CheckpointReader> JobCheckpoints::TakeNewest() {
  return std::exchange(newest_, std::nullopt);
}

absl::Status JobCheckpoints::RestoreFailed(int64_t step,
                                           const absl::Status& why) {
  if (absl::IsDataLoss(why)) {
    whole_.FoundDamaged(step, why);
  } else if (absl::IsUnknown(why)) {  // the code of EIO
    whole_.Forget(step);
  } else {
    return why;
  }
  return absl::UnavailableError(why.message());
}

absl::StatusOr<bool> JobCheckpoints::CheckOrSetAside(int64_t step) {
  const absl::Status whole = whole_.Check(step);
  if (whole.ok()) {
    // The attempt that wrote it may have failed to do so.
    LOCKSTEP_RETURN_IF_ERROR(store_.SyncNames());
    return true;
  }
  if (!WholeCheckpoints::IsDamage(whole)) return whole;
  // CheckpointWriter replaces no checkpoint that only its hashes show to be
  // damaged, so it must be out of the way. It may be gone already.
  const absl::Status moved = store_.SetAside(step, kDamaged).status();
  if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  return false;
}

void JobCheckpoints::RemoveUnfinished() {
  // If this fails, for example on a read-only volume, no other process can
  // complete a checkpoint either.
  if (absl::Status removed = store_.RemoveUnfinished(); !removed.ok()) {
    spdlog::warn("{}", std::string(removed.message()));
  }
}

absl::Status JobCheckpoints::Hold() {
  if (!owner_.has_value()) return absl::OkStatus();
  const bool gone = owner_->IsGone();
  if (const absl::Status held = owner_->Hold(); !held.ok()) {
    // kFailedPrecondition would say that servers are elsewhere in the job.
    return absl::PermissionDeniedError(held.message());
  }
  // Not while its volume is away: then nothing has been made anew.
  if (gone && !owner_->IsGone()) {
    notify_(absl::StrCat(
        "checkpoint.directory: ", directory(), " or .owner in it was removed ",
        "or replaced while the job runs; what it held may be gone. The job ",
        "goes on to write checkpoints there"));
  }
  return absl::OkStatus();
}

absl::Status JobCheckpoints::Save(const Manifest& manifest, const StateMap& map,
                                  const JobSnapshot& snapshot,
                                  const std::vector<ShardAccess*>& servers) {
  LOCKSTEP_RETURN_IF_ERROR(Hold());
  const absl::Time began = Clock::Real().Now();
  absl::Time reported = began;
  const auto report = [&](int64_t done, int64_t total) {
    const absl::Time now = Clock::Real().Now();
    if (now - reported < kReportEvery) return absl::OkStatus();
    reported = now;
    spdlog::info("writes the checkpoint of step {}{}", manifest.global_step,
                 ProgressText(done, total, absl::ToDoubleSeconds(now - began)));
    return absl::OkStatus();
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      written_,
      SaveCheckpoint(store_, manifest, map, snapshot, servers, report));
  return absl::OkStatus();
}

void JobCheckpoints::Saved(int64_t step) {
  whole_.Wrote(step, written_);
  if (auto pruned = whole_.Prune(config_.keep); !pruned.ok()) {
    spdlog::warn("old files stay in the directory of checkpoints: {}",
                 pruned.status().message());
  }
}

}  // namespace lockstep::chief
