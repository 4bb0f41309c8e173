#ifndef LOCKSTEP_SERVER_SHARD_SHARD_PULSE_H_
#define LOCKSTEP_SERVER_SHARD_SHARD_PULSE_H_

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace lockstep::server {

// ShardPulse detects that a lock of a server's shard can no longer be acquired:
// one thread acquires the locks periodically, and a second one checks when that
// last succeeded. A server that hangs in one of them answers no useful call,
// but a health check, which needs none of them, would not show it.
//
// Threads: belongs to the thread that makes it.
// Borrows: the clock.
class ShardPulse {
 public:
  struct Options {
    absl::Duration every = absl::Seconds(1);
    absl::Duration longest = absl::Seconds(20);
    // Takes all locks, one after the other.
    std::function<void()> touch;
    // Called with false when touch() has taken longer than `longest`, and with
    // true when it returns again.
    std::function<void(bool lives)> tell;
  };

  ShardPulse(const Options& options, const Clock& clock);
  ~ShardPulse();  // waits for touch()
  ShardPulse(const ShardPulse&) = delete;
  ShardPulse& operator=(const ShardPulse&) = delete;

  // Checks once, as the second thread does periodically. A long pause between
  // two checks means that this process itself was stopped, and proves nothing
  // about the shard.
  void Look() ABSL_LOCKS_EXCLUDED(mutex_, look_mutex_);

 private:
  void Touch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for `every`. Returns false if the threads must end.
  bool Rest() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const Clock& clock_;

  Mutex look_mutex_;  // one look at a time
  bool lives_ ABSL_GUARDED_BY(look_mutex_) = true;
  absl::Time looked_ ABSL_GUARDED_BY(look_mutex_);

  Mutex mutex_;
  CondVar wake_;
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time touched_ ABSL_GUARDED_BY(mutex_);

  std::thread touches_;  // last: they use all of the above
  std::thread looks_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_SHARD_PULSE_H_
