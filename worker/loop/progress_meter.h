#ifndef LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_
#define LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/plan/figure.h"
#include "common/plan/progress.h"

namespace lockstep::worker {

// ProgressMeter counts a worker's passes and measures how long it waits, for
// its reports to the chief.
//
// Threads: safe to share: the loop writes, the heartbeats read.
class ProgressMeter {
 public:
  explicit ProgressMeter(const Clock& clock);

  // The worker begins `activity`, a text for people. Time in a waiting activity
  // counts as waiting.
  void Begin(const std::string& activity, bool waiting)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Computed(int64_t local_step, double loss, int64_t examples)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Elements of a gradient that were NaN or infinite.
  void NonFinite(int64_t elements) ABSL_LOCKS_EXCLUDED(mutex_);
  // A figure of the user's program, in place of an earlier one of that name.
  //
  //   kInvalidArgument  as CheckFigures()
  absl::Status Report(const NamedFigure& figure) ABSL_LOCKS_EXCLUDED(mutex_);
  // The pass was dropped before its gradient was computed: it is stale.
  void Dropped() ABSL_LOCKS_EXCLUDED(mutex_);
  void Accepted() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stale() ABSL_LOCKS_EXCLUDED(mutex_);
  void Duplicates(int64_t parts) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the counts so far; `waiting` includes the wait at hand.
  Progress Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Clock& clock_;

  mutable Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_
