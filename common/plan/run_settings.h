#ifndef LOCKSTEP_COMMON_PLAN_RUN_SETTINGS_H_
#define LOCKSTEP_COMMON_PLAN_RUN_SETTINGS_H_

#include <cstdint>
#include <vector>

namespace lockstep {

// What can be changed while a job runs. The chief decides it; servers keep it
// in their step records, so that it outlives every process.
struct RunSettings {
  // Of an elastic job; indices are below it.
  static constexpr int kMaxWorkers = 1024;

  int64_t revision = 0;            // counts changes; 0: as the job file says
  int replicas_to_aggregate = 0;   // A; 0: as the job file says
  double learning_rate_scale = 1;  // times the schedule; > 0, finite
  bool paused = false;             // no step is committed
  // Elastic jobs: those who take part, ascending; N is their number. Empty: all
  // workers of the job.
  std::vector<int> workers{};

  bool operator==(const RunSettings&) const = default;

  // Whether a gradient that was summed under one of them may count under the
  // other.
  bool SameSum(const RunSettings& other) const {
    return replicas_to_aggregate == other.replicas_to_aggregate &&
           learning_rate_scale == other.learning_rate_scale &&
           workers == other.workers;
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_RUN_SETTINGS_H_
