// The part of Chief that brings about what operators want of a running job.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/chief.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace lockstep {

int Chief::num_workers() const {
  return settings_.workers.empty() ? job_.total_num_replicas
                                   : static_cast<int>(settings_.workers.size());
}

absl::Status Chief::Steer() {
  if (!SettingsChange()) return absl::OkStatus();
  // What accumulators have taken for a step is gone, so it is not redone.
  if (job_.mode == SyncMode::kCompatible && !loop_->between_steps()) {
    return absl::OkStatus();
  }
  return NextStep();
}

absl::Status Chief::ApplySettings(const RunSettings& wanted) {
  const RunSettings before = std::exchange(settings_, wanted);
  if (before.workers != wanted.workers) {
    // Shards follow from who takes part, so everybody asks for its own again.
    members_.SetWorkers(wanted.workers);
    members_.ExpireAll(TaskType::kWorker, "the workers of the job change",
                       clock_.Now());
  }
  LOCKSTEP_RETURN_IF_ERROR(BringTogether(clock_.Now()));
  step_began_ = clock_.Now();
  board_.SetWaits({});
  spdlog::warn("from step {} on: {} (revision {})", loop_->step() + 1,
               DescribeChange(job_, before, wanted), wanted.revision);
  return absl::OkStatus();
}

bool Chief::SumsOtherwise(absl::Span<const ServerReport> reports) const {
  if (job_.mode == SyncMode::kCompatible) return false;
  const RunSettings initial = InitialSettings(job_);
  return std::any_of(
      reports.begin(), reports.end(), [&](const ServerReport& report) {
        const bool changed = report.settings.revision > 0;
        return report.has_parts &&
               !settings_.SameSum(changed ? report.settings : initial);
      });
}

absl::Status Chief::StandStill() {
  if (!loop_->between_steps()) return absl::OkStatus();
  if (loop_->step() > 0) MaybeStartCheckpoint();
  if (step_began_ != absl::InfinitePast()) {
    board_.SetWaits(
        {{"everybody", "an operator to resume the job", step_began_}});
  }
  return absl::OkStatus();
}

void Chief::RestoreSettings(const Manifest& manifest) {
  const auto value = [&](const char* name, double otherwise) {
    const auto found = manifest.settings.find(name);
    return found == manifest.settings.end() ? otherwise : found->second;
  };
  if (manifest.settings.empty()) return;
  RunSettings restored = settings_;
  restored.revision = 1;
  restored.learning_rate_scale = value("learning_rate_scale", 1);
  restored.paused = value("paused", 0) != 0;
  const double replicas =
      value("replicas_to_aggregate", settings_.replicas_to_aggregate);
  const bool possible = replicas >= 1 &&
                        job_.total_num_replicas >= job_.replicas_to_aggregate &&
                        (replicas <= job_.total_num_replicas ||
                         job_.mode == SyncMode::kCompatible);
  if (possible && !job_.elastic_workers) {
    restored.replicas_to_aggregate = static_cast<int>(replicas);
  }
  if (restored.learning_rate_scale <= 0) restored.learning_rate_scale = 1;
  spdlog::warn("as the job was changed before its checkpoint: {}",
               DescribeChange(job_, settings_, restored));
  settings_ = restored;
}

}  // namespace lockstep
