#ifndef LOCKSTEP_CHIEF_SUMMARY_PERIODIC_THREAD_H_
#define LOCKSTEP_CHIEF_SUMMARY_PERIODIC_THREAD_H_

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep::chief {

// PeriodicThread calls a function periodically, and once at the end, in a
// thread of its own, so that a slow disk does not hold up the job.
//
// Threads: not thread-safe.
class PeriodicThread {
 public:
  // Calls `work` with pauses of `every`, which must be positive, from the end
  // of one call to the beginning of the next.
  PeriodicThread(absl::Duration every, std::function<void()> work);
  // Returns after the last call.
  ~PeriodicThread();
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the time of the next call; false: this is the last one.
  bool Rest() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration every_;
  const std::function<void()> work_;

  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SUMMARY_PERIODIC_THREAD_H_
