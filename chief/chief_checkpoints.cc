// The part of Chief that has to do with checkpoints and the end of a job.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/chief.h"
#include "chief/job/score_wait.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/step_directory.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kReportEvery = absl::Seconds(10);
// What the names begin with of checkpoints that are none any more.
constexpr char kSetAside[] = "set-aside-";
constexpr char kDamaged[] = "damaged-";
// Between attempts to write the last checkpoint; the pause doubles.
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(5);
// How long a job that was asked to stop tries: less than its processes are
// given to end.
constexpr absl::Duration kStopPatience = absl::Seconds(5);

}  // namespace

absl::Status Chief::PrepareBeginning() {
  if (!beginning_.anew() || store_.directory().empty()) return absl::OkStatus();
  if (beginning_.step >= 0) {
    const absl::Status whole = whole_.Check(beginning_.step);
    if (!whole.ok()) {
      return absl::Status(whole.code(), absl::StrCat("--from ", beginning_.step,
                                                     ": ", whole.message()));
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                            ListStepDirectories(store_.directory()));
  for (const int64_t step : steps) {
    if (step <= beginning_.step) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string path,
                              store_.SetAside(step, kSetAside));
    Notify(absl::StrCat("the checkpoint of step ", step,
                        " was set aside: ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Chief::WholeStep() {
  newest_whole_.reset();
  if (store_.directory().empty()) return -1;
  LOCKSTEP_ASSIGN_OR_RETURN(WholeCheckpoints::Newest newest,
                            whole_.FindNewest());
  newest_whole_ = std::move(newest.reader);
  if (!newest_whole_.has_value()) return -1;
  const int64_t step = newest_whole_->manifest().global_step;
  for (const WholeCheckpoints::Damaged& damaged : newest.damaged) {
    const absl::StatusOr<std::string> path =
        store_.SetAside(damaged.step, kDamaged);
    Notify(absl::StrCat(
        "the checkpoint of step ", damaged.step,
        " is damaged and passed over (", damaged.why.message(), "); it ",
        path.ok() ? absl::StrCat("is now ", *path) : "stays where it is",
        ". The newest whole one is of step ", step, ", ", damaged.step - step,
        " steps before it"));
  }
  return step;
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
  manifest.saved_at_unix_ms = absl::ToUnixMillis(absl::Now());
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
      whole_.Wrote(step);
      if (auto pruned = whole_.Prune(job_.checkpoint.keep); !pruned.ok()) {
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

void Chief::Notify(const std::string& text) {
  spdlog::warn("{}", text);
  board_.Notify(text, clock_.Now());
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
  if (const auto over = trouble_.Saved(done.step)) Notify(*over);
}

void Chief::CheckpointFailed(int64_t step, const absl::Status& status) {
  const std::string why(status.message());
  spdlog::error("the checkpoint of step {} failed, the one before stays: {}",
                step, why);
  policy_->Failed(clock_.Now());
  board_.CheckpointFailed(absl::StrCat("step ", step, ": ", why));
  if (const auto line = trouble_.Failed(step, status, clock_.Now())) {
    board_.Notify(*line, clock_.Now());
  }
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
  absl::Duration pause = kFirstPause;
  while (true) {
    board_.SetState(JobState::kFinishing, "", clock_.Now());
    const absl::Status saved = TrySaveLastCheckpoint();
    const absl::Duration patience =
        StopRequested().ok() ? job_.max_wait
                             : std::min(job_.max_wait, kStopPatience);
    if (saved.ok() || replaced_ || clock_.Now() - began >= patience) {
      return saved;
    }
    LOCKSTEP_RETURN_IF_ERROR(PauseBeforeLastCheckpoint(saved, began, pause));
    pause = std::min(2 * pause, kLongestPause);
    if (!Passing(saved) && !server_away_) continue;
    LOCKSTEP_RETURN_IF_ERROR(Recover());
    if (loop_->step() >= last_step) continue;
    // State was lost: what leads to the end has to be done once more, by
    // workers that wait for the end.
    board_.SetState(JobState::kTraining, "", clock_.Now());
    const absl::Status trained = Train();
    if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  }
}

absl::Status Chief::PauseBeforeLastCheckpoint(const absl::Status& failure,
                                              absl::Time began,
                                              absl::Duration pause) {
  const std::string why(failure.message());
  spdlog::warn("the end waits: {}", why);
  const absl::Time until = clock_.Now() + pause;
  while (clock_.Now() < until && !server_away_) {
    board_.SetWaits({{"the end",
                      absl::StrCat("the checkpoint of step ", loop_->step(),
                                   ", which cannot be written: ", why),
                      began}});
    for (const auto& dead : members_.TakeDead(clock_.Now())) {
      LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
    }
    absl::SleepFor(std::min(kTick, pause));
  }
  board_.SetWaits({});
  return absl::OkStatus();
}

void Chief::SaveBeforeFailing(const absl::Status& failure) {
  // Other failures may come from what is to be saved, such as values that a
  // rate too large has spoilt.
  const bool full = absl::IsResourceExhausted(failure);
  if (replaced_ || !(full || absl::IsDeadlineExceeded(failure)) ||
      store_.directory().empty() || !members_.NotAlive(TaskType::kPs).empty()) {
    return;
  }
  if (const absl::Status saved = TrySaveLastCheckpoint(); !saved.ok()) {
    spdlog::error("no checkpoint of step {} before the job fails: {}",
                  loop_->step(), std::string(saved.message()));
    return;
  }
  spdlog::info("the job is about to fail; a checkpoint holds step {}",
               loop_->step());
  // A table that was full is larger the next time, which files are not.
  board_.SetStateSaved(full);
}

absl::Status Chief::TrySaveLastCheckpoint() {
  const int64_t step = loop_->step();
  if (const absl::Status closed = servers_.server(0).CloseTokens();
      !closed.ok()) {
    return absl::IsAborted(closed) ? Replaced(closed) : closed;
  }
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
  if (saved_step_ == step) {
    // One that a chief before this one has written may have been damaged since.
    if (whole_.Check(step).ok()) return absl::OkStatus();
    store_.SetAside(step, kDamaged).IgnoreError();
  }
  LOCKSTEP_RETURN_IF_ERROR(StartCheckpoint());
  drain();
  return failure;
}

absl::Status Chief::Finish() {
  if (!has_evaluator_) return absl::OkStatus();
  const int64_t step = loop_->step();
  const absl::Time began = clock_.Now();
  const TaskId evaluator{TaskType::kEvaluator, 0};
  ScoreWait wait(step, began);
  while (true) {
    const absl::Time now = clock_.Now();
    const auto evaluation = board_.Get(now).evaluation;
    if (evaluation.has_value() && evaluation->step >= step) break;
    if (wait.IsOver(members_.Get(evaluator), now)) {
      spdlog::warn("step {} stays unscored: {}", step, wait.why());
      board_.SetScoreTrouble(wait.why());
      break;
    }
    board_.SetWaits({{"the end", wait.waits_for(), began}});
    if (now - std::max(began, last_report_) > kReportEvery) {
      last_report_ = now;
      spdlog::info("waiting for {}", wait.waits_for());
    }
    for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
      LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
    }
    LOCKSTEP_RETURN_IF_ERROR(StopRequested());
    absl::SleepFor(kTick);
  }
  board_.SetWaits({});
  return absl::OkStatus();
}

}  // namespace lockstep
