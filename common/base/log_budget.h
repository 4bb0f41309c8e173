#ifndef LOCKSTEP_COMMON_BASE_LOG_BUDGET_H_
#define LOCKSTEP_COMMON_BASE_LOG_BUDGET_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {

// LogBudget bounds the lines that calls of peers write to the log: a peer may
// repeat a call without end, and must not fill the disk or hide other lines.
//
// Threads: safe to share.
class LogBudget {
 public:
  static constexpr int kLines = 60;
  static constexpr absl::Duration kPer = absl::Minutes(1);

  // True if a line may be written at `now`: true for the first kLines calls in
  // each kPer.
  bool Take(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    // A clock that is set back must not end the lines for good.
    if (now - since_ >= kPer || now < since_) {
      since_ = now;
      lines_ = 0;
    }
    return lines_++ < kLines;
  }

 private:
  Mutex mutex_;
  absl::Time since_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_LOG_BUDGET_H_
