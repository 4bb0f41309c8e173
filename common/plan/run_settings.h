#ifndef LOCKSTEP_COMMON_PLAN_RUN_SETTINGS_H_
#define LOCKSTEP_COMMON_PLAN_RUN_SETTINGS_H_

#include <cstdint>
#include <vector>

namespace lockstep {

// Settings that can change while a job runs. The chief decides them; servers
// keep them in their step records, so they survive every process.
struct RunSettings {
  // Bound of worker indices in an elastic job.
  static constexpr int kMaxWorkers = 1024;

  int64_t revision = 0;            // counts changes; 0: as in the job file
  int replicas_to_aggregate = 0;   // A; 0: as in the job file
  double learning_rate_scale = 1;  // times the schedule; > 0, finite
  bool paused = false;             // no step is committed
  // Elastic jobs: the workers that take part, ascending; N is their number.
  // Empty: all workers of the job.
  std::vector<int> workers{};

  bool operator==(const RunSettings&) const = default;

  // True if a gradient that was summed under these settings may count under
  // `other`.
  bool SameSum(const RunSettings& other) const {
    return replicas_to_aggregate == other.replicas_to_aggregate &&
           learning_rate_scale == other.learning_rate_scale &&
           workers == other.workers;
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_RUN_SETTINGS_H_
