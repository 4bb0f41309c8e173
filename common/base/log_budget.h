#ifndef LOCKSTEP_COMMON_BASE_LOG_BUDGET_H_
#define LOCKSTEP_COMMON_BASE_LOG_BUDGET_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {

// LogBudget bounds the lines that calls and connections of peers write to the
// log: a peer may repeat them without end, and must not fill the disk or hide
// other lines.
//
// Threads: safe to share.
class LogBudget {
 public:
  static constexpr int kLines = 60;

  // Allows so many lines in a minute.
  explicit LogBudget(int lines = kLines) : most_(lines) {}

  // True if a line may be written at `now`, of a steady clock: true for the
  // first calls in each minute.
  bool Take(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (now - since_ >= absl::Minutes(1)) {
      since_ = now;
      lines_ = 0;
    }
    return lines_++ < most_;
  }

 private:
  const int most_;

  Mutex mutex_;
  absl::Time since_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_LOG_BUDGET_H_
