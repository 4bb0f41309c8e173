#ifndef LOCKSTEP_COMMON_BASE_MUTEX_H_
#define LOCKSTEP_COMMON_BASE_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace lockstep {

// Mutex is std::mutex with Clang's thread-safety annotations.
//
// absl::Mutex of the package is not used: ThreadSanitizer does not see it and
// reports correct classes as racing.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// MutexLock holds a Mutex for the length of a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// CondVar waits with a Mutex held. Waits wake spuriously: always loop on the
// condition.
//
// Threads: safe to share, like Mutex.
class CondVar {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }

  // Waits at most `timeout` (a std::chrono duration) and at most an hour,
  // because longer durations might overflow the clock. False if that time
  // passed.
  template <typename Duration>
  bool WaitFor(Mutex& mutex, Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const Duration longest = std::chrono::hours(1);
    const bool signalled =
        condition_.wait_for(lock, std::min(timeout, longest)) ==
        std::cv_status::no_timeout;
    lock.release();
    return signalled;
  }

  void Signal() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_MUTEX_H_
