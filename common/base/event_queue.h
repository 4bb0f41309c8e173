#ifndef LOCKSTEP_COMMON_BASE_EVENT_QUEUE_H_
#define LOCKSTEP_COMMON_BASE_EVENT_QUEUE_H_

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_deadline.h"

namespace lockstep {

// EventQueue carries events from other threads to the one thread that decides.
//
// Threads: any thread may Push(); one thread pops.
template <typename Event>
class EventQueue {
 public:
  void Push(Event event) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
    ready_.Signal();
  }

  // Returns the oldest event, or nothing when none came within `timeout`.
  std::optional<Event> PopFor(absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto deadline = SteadyDeadline(timeout);
    MutexLock lock(mutex_);
    while (events_.empty()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return std::nullopt;
      ready_.WaitFor(mutex_, left);
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  Mutex mutex_;
  CondVar ready_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_EVENT_QUEUE_H_
