#ifndef LOCKSTEP_CHIEF_EVENTS_JOB_REPORTS_H_
#define LOCKSTEP_CHIEF_EVENTS_JOB_REPORTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "chief/operators/status_table.h"
#include "common/plan/run_settings.h"

namespace lockstep::chief {

// The reports of a JobDriver for operators. They correspond to the calls of
// StatusTable with nearly the same names.
struct StepReached {
  int64_t step = 0;
};
struct TrainingBegun {  // the plan may be published
  int64_t step = 0;
};
struct StateReached {
  JobState state = JobState::kStarting;
  std::string reason = {};
  bool hold = false;
};
struct Waits {
  std::vector<StatusTable::Wait> waits = {};
};
struct SettingsInEffect {
  RunSettings settings = {};
};
// The servers go back to the checkpoint of `step`, or to the initial values.
struct WentBack {
  int64_t step = 0;
};
struct LossesSoFar {
  StatusTable::Losses losses = {};
};
struct ProcessDied {
  StatusTable::Death death = {};
};
struct StepsRedone {
  std::string what = {};
};
struct CheckpointSaved {
  int64_t step = 0;
  // When a checkpoint from before this chief was written; nullopt: it is new.
  std::optional<absl::Time> at = {};
};
struct CheckpointTroubled {
  std::string why = {};
};
struct ScoreTroubled {
  std::string why = {};
};
struct StateSaved {
  bool saved = false;
};
struct Noticed {
  std::string text = {};
};

using JobReport =
    std::variant<StepReached, TrainingBegun, StateReached, Waits,
                 SettingsInEffect, WentBack, LossesSoFar, ProcessDied,
                 StepsRedone, CheckpointSaved, CheckpointTroubled,
                 ScoreTroubled, StateSaved, Noticed>;

// Writes `report`, which was made at `now`, into the status table.
void Write(const JobReport& report, StatusTable& status_table, absl::Time now);

// Returns lines for the log: the sum of a job's losses, and the deaths that
// caused them. Returns none if nothing was lost.
std::vector<std::string> SummaryOf(const StatusTable::View& view);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_JOB_REPORTS_H_
