#include "chief/job_recovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/plan/placement.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/variable_settings.h"

namespace lockstep::chief {
namespace {

// The time that a round waits for a worker that sends nothing, and between two
// checks.
constexpr absl::Duration kGivenValuesWait = absl::Seconds(3);
constexpr absl::Duration kPoll = absl::Milliseconds(20);

}  // namespace

void JobRecovery::RequestStop(const absl::Status& stop) {
  MutexLock lock(stop_mutex_);
  RecordStop(stop, stop_);
}

absl::StatusOr<RoundOutcome> JobRecovery::Run(const Recover& recover) {
  if (plan_.parts.empty()) LOCKSTEP_RETURN_IF_ERROR(MakePlanOfAll());
  LOCKSTEP_ASSIGN_OR_RETURN(RecoveryRound::Outcome outcome,
                            round_.Run(plan_, recover.request));
  map_ = std::move(outcome.map);
  // Workers that register again need the plan of the mirrors that now sum.
  if (parts_.driver.opened()) parts_.status.PublishPlan(map_.plan);
  if (!outcome.plan.copies.empty()) {
    JobActions actions;
    Notify(actions, TextOfCopies(outcome.plan));
    carrier_.Carry(actions);
  }
  return RoundOutcome{std::move(outcome.plan),
                      outcome.step,
                      outcome.checkpoint_step,
                      parts_.servers.epoch(),
                      std::move(outcome.servers),
                      parts_.checkpoints.SavedAt(outcome.checkpoint_step)};
}

absl::Status JobRecovery::MakePlanOfAll() {
  LOCKSTEP_RETURN_IF_ERROR(CheckGradientType(parts_.status.variables(),
                                             parts_.job.gradient_wire_type));
  LOCKSTEP_RETURN_IF_ERROR(
      SettingsOf(parts_.job, parts_.status.variables()).status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      plan_,
      PlanOfJob(parts_.job, parts_.status.variables(), parts_.servers.size()));
  return absl::OkStatus();
}

absl::Status JobRecovery::OnWorking(const std::string& what) {
  JobActions actions;
  const absl::Status stop =
      parts_.driver.OnWorking(what, parts_.clock.Now(), actions);
  carrier_.Carry(actions);
  if (!stop.ok()) return stop;
  MutexLock lock(stop_mutex_);
  return stop_.value_or(absl::OkStatus());
}

OnTransferred JobRecovery::Watch(std::string what) {
  return WithProgress(
      std::move(what), parts_.clock,
      [this](const std::string& text) { return OnWorking(text); });
}

absl::Status JobRecovery::OnStartFrom(const RecoveryPlan& plan, bool first) {
  went_back_ = plan.action == RecoveryPlan::Action::kGoBack ||
               parts_.members.HasTakenOver();
  JobActions actions;
  const absl::Time until = parts_.driver.OnStartFrom(
      plan, first, LatestStep().value_or(-1), actions);
  carrier_.Carry(actions);
  while (parts_.clock.Now() < until) {  // not if it is InfinitePast()
    LOCKSTEP_RETURN_IF_ERROR(
        OnWorking("a heartbeat of each worker of an earlier chief"));
    absl::SleepFor(std::min(kPoll, until - parts_.clock.Now()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SafetensorsReader>>
JobRecovery::AwaitGivenValues(const StateMap& map) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<SafetensorsReader> values,
                            parts_.given_values.Take());
  if (values == nullptr && went_back_) {
    values = parts_.given_values.TakeKept(map.plan.variables);
  }
  if (values != nullptr) return values;
  LOCKSTEP_RETURN_IF_ERROR(parts_.given_values.Want(map.plan.variables));
  // A longer wait takes several rounds, so that the driver learns of deaths in
  // between.
  const absl::Time until = parts_.clock.Now() + kGivenValuesWait;
  while (values == nullptr) {
    const std::string whom = parts_.given_values.Progress();
    LOCKSTEP_RETURN_IF_ERROR(OnWorking(whom));
    if (parts_.clock.Now() >= until && whom == parts_.given_values.Progress()) {
      return absl::UnavailableError(absl::StrCat("they wait for ", whom));
    }
    absl::SleepFor(kPoll);
    LOCKSTEP_ASSIGN_OR_RETURN(values, parts_.given_values.Take());
  }
  return values;
}

absl::Status JobRecovery::WriteInitialValues(const StateMap& map) {
  if (HasGivenValues(map.plan.variables)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<SafetensorsReader> values,
                              AwaitGivenValues(map));
    const auto watch = Watch("the values that a worker gave to be written");
    LOCKSTEP_RETURN_IF_ERROR(
        parts_.servers.WriteInitialValues(*values, map, watch).status());
  }
  const std::string& file = parts_.job.checkpoint.initial_values;
  if (file.empty()) return absl::OkStatus();
  const auto watch =
      Watch(absl::StrCat("the values of ", file, " to be written"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string found,
      parts_.servers.WriteInitialValuesOf(parts_.job, map, watch));
  Tell(found);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RecoverySource::Restored>> JobRecovery::Restore(
    const StateMap& map) {
  const std::optional<CheckpointReader> checkpoint =
      parts_.checkpoints.TakeNewest();
  const bool done =
      checkpoint.has_value() &&
      checkpoint->manifest().global_step >= parts_.job.train_steps;
  // A running job can wait for its volume; a job that starts would only notice
  // at its first checkpoint.
  if (!parts_.driver.opened() && !done && !parts_.checkpoints.none()) {
    LOCKSTEP_RETURN_IF_ERROR(parts_.checkpoints.CheckWritable());
  }
  if (!checkpoint.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(WriteInitialValues(map));
    return std::nullopt;
  }
  return RestoreFrom(*checkpoint, map);
}

absl::StatusOr<RecoverySource::Restored> JobRecovery::RestoreFrom(
    const CheckpointReader& checkpoint, const StateMap& map) {
  const Manifest& manifest = checkpoint.manifest();
  JobActions actions;
  parts_.driver.OnRestore(manifest.settings, actions);
  carrier_.Carry(actions);
  Restored restored{manifest.global_step, {}};
  absl::StatusOr<std::vector<float>> scalars = parts_.servers.Restore(
      checkpoint, map,
      Watch(absl::StrCat("the checkpoint of step ", restored.step,
                         " to be restored")));
  if (!scalars.ok()) {
    return parts_.checkpoints.RestoreFailed(restored.step, scalars.status());
  }
  restored.scalars = *std::move(scalars);
  Write(CheckpointSaved{restored.step,
                        absl::FromUnixMillis(manifest.saved_at_unix_ms)},
        parts_.status, parts_.clock.Now());
  Tell(absl::StrCat("resumed from the checkpoint of step ", restored.step,
                    " in ", parts_.checkpoints.directory()));
  return restored;
}

void JobRecovery::Tell(const std::string& text) {
  spdlog::info("{}", text);
  parts_.status.Notify(text, parts_.clock.Now());
}

}  // namespace lockstep::chief
