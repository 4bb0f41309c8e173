// The part of Chief that has to do with checkpoints and the end of a job.

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/chief.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// How long the end waits for an evaluator that is not there.
constexpr absl::Duration kEvaluatorGrace = absl::Seconds(10);
constexpr absl::Duration kReportEvery = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::optional<CheckpointReader>> Chief::OpenLatest() {
  if (store_.directory().empty()) return std::nullopt;
  LOCKSTEP_ASSIGN_OR_RETURN(LatestCheckpoint latest, store_.Latest());
  for (const std::string& warning : latest.warnings) {
    spdlog::warn("{}", warning);
  }
  if (!latest.manifest.has_value()) return std::nullopt;
  LOCKSTEP_RETURN_IF_ERROR(store_.Verify(latest.manifest->global_step));
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointReader reader,
                            store_.Open(latest.manifest->global_step));
  return std::optional<CheckpointReader>(std::move(reader));
}

void Chief::RemoveUnfinished() {
  if (store_.directory().empty()) return;
  // Where that cannot be done, as on a volume that is read-only, nobody can
  // complete a checkpoint either.
  if (absl::Status removed = store_.RemoveUnfinished(); !removed.ok()) {
    spdlog::warn("{}", std::string(removed.message()));
  }
}

Manifest Chief::MakeManifest(int64_t step) const {
  Manifest manifest;
  manifest.job_name = job_.name;
  manifest.job_id = self_.job_id;
  manifest.global_step = step;
  manifest.seed = job_.seed;
  manifest.mode = job_.mode == SyncMode::kStrict ? "strict" : "compatible";
  manifest.num_workers = num_workers();
  if (settings_.revision > 0) {
    manifest.settings["learning_rate_scale"] = settings_.learning_rate_scale;
    manifest.settings["replicas_to_aggregate"] =
        settings_.replicas_to_aggregate;
    manifest.settings["paused"] = settings_.paused ? 1 : 0;
  }
  manifest.saved_at_unix_ms = absl::ToUnixMillis(clock_.Now());
  return manifest;
}

absl::Status Chief::StartCheckpoint() {
  const int64_t step = loop_->step();
  JoinCheckpoint();
  LOCKSTEP_ASSIGN_OR_RETURN(JobSnapshot snapshot,
                            servers_.BeginSnapshot(step, committed_attempt_));
  checkpoint_running_ = true;
  checkpoint_thread_ = std::thread([this, step, manifest = MakeManifest(step),
                                    snapshot = std::move(snapshot)] {
    const absl::Status status =
        SaveCheckpoint(store_, manifest, map_, snapshot, servers_.Access());
    servers_.EndSnapshot();
    if (status.ok()) {
      if (auto pruned = store_.Prune(job_.checkpoint.keep); !pruned.ok()) {
        spdlog::warn("old checkpoints stay: {}", pruned.status().message());
      }
    }
    events_.Push(CheckpointDone{step, status});
  });
  return absl::OkStatus();
}

void Chief::MaybeStartCheckpoint() {
  const int64_t step = loop_->step();
  const bool wanted = desk_.checkpoint_wanted();
  const bool due = policy_->Due(step, clock_.Now());
  if (!wanted && !due) return;
  if (checkpoint_running_) {
    if (due) {
      spdlog::warn("step {}: no checkpoint, the one before is being written",
                   step);
    }
    return;
  }
  desk_.CheckpointBegun();
  if (wanted && saved_step_ == step) return;
  if (absl::Status status = StartCheckpoint(); !status.ok()) {
    CheckpointFailed(step, status);
  }
}

void Chief::OnCheckpoint(const CheckpointDone& done) {
  checkpoint_running_ = false;
  if (!done.status.ok()) {
    CheckpointFailed(done.step, done.status);
    return;
  }
  saved_step_ = done.step;
  policy_->Saved(done.step, clock_.Now());
  board_.Checkpointed(done.step);
  spdlog::info("checkpoint of step {} in {}", done.step, store_.directory());
}

void Chief::CheckpointFailed(int64_t step, const absl::Status& status) {
  const std::string why(status.message());
  spdlog::error("the checkpoint of step {} failed, the one before stays: {}",
                step, why);
  policy_->Failed(clock_.Now());
  board_.CheckpointFailed(absl::StrCat("step ", step, ": ", why));
}

void Chief::JoinCheckpoint() {
  if (checkpoint_thread_.joinable()) checkpoint_thread_.join();
}

absl::StatusOr<int64_t> Chief::LatestStep() const {
  if (store_.directory().empty()) return -1;
  LOCKSTEP_ASSIGN_OR_RETURN(const LatestCheckpoint latest, store_.Latest());
  return latest.manifest.has_value() ? latest.manifest->global_step : -1;
}

absl::Status Chief::SaveLastCheckpoint() {
  const absl::Time began = step_began_ = clock_.Now();
  const int64_t last_step = loop_->step();
  while (true) {
    board_.SetState(JobState::kFinishing, "", clock_.Now());
    const absl::Status saved = TrySaveLastCheckpoint();
    if (!Passing(saved) || clock_.Now() - began > job_.max_wait) return saved;
    spdlog::warn("the end waits: {}", std::string(saved.message()));
    LOCKSTEP_RETURN_IF_ERROR(Recover());
    if (loop_->step() >= last_step) continue;
    // State was lost: what leads to the end has to be done once more, by
    // workers that wait for the end.
    board_.SetState(JobState::kTraining, "", clock_.Now());
    const absl::Status trained = Train();
    if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  }
}

absl::Status Chief::TrySaveLastCheckpoint() {
  const int64_t step = loop_->step();
  LOCKSTEP_RETURN_IF_ERROR(servers_.server(0).CloseTokens());
  if (store_.directory().empty()) return absl::OkStatus();
  absl::Status failure;
  const auto drain = [&] {
    JoinCheckpoint();
    while (std::optional<Event> event = events_.PopFor(absl::ZeroDuration())) {
      if (auto* done = std::get_if<CheckpointDone>(&*event)) {
        OnCheckpoint(*done);
        failure = done->status;
      }
    }
  };
  drain();
  if (saved_step_ == step) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(StartCheckpoint());
  drain();
  return failure;
}

absl::Status Chief::Finish() {
  if (!has_evaluator_ || store_.directory().empty()) return absl::OkStatus();
  const int64_t step = loop_->step();
  const absl::Time began = clock_.Now();
  const TaskId evaluator{TaskType::kEvaluator, 0};
  absl::Time alive_at = began;
  while (true) {
    const absl::Time now = clock_.Now();
    const auto evaluation = board_.Get(now).evaluation;
    if (evaluation.has_value() && evaluation->step >= step) break;
    board_.SetWaits(
        {{"the end", absl::StrCat("evaluator 0 to score step ", step), began}});
    if (now - std::max(began, last_report_) > kReportEvery) {
      last_report_ = now;
      spdlog::info("waiting for evaluator 0 to score step {}", step);
    }
    for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
      LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
    }
    if (members_.Get(evaluator).state == MembershipTable::State::kAlive) {
      alive_at = now;
    }
    if (now - alive_at > kEvaluatorGrace) {
      spdlog::warn("evaluator 0 is gone; step {} stays unscored", step);
      break;
    }
    LOCKSTEP_RETURN_IF_ERROR(StopRequested());
    absl::SleepFor(kTick);
  }
  board_.SetWaits({});
  return absl::OkStatus();
}

}  // namespace lockstep
