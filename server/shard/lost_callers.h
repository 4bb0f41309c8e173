#ifndef LOCKSTEP_SERVER_SHARD_LOST_CALLERS_H_
#define LOCKSTEP_SERVER_SHARD_LOST_CALLERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep::server {

// LostCallers finds the workers whose connection has ended: the stream on which
// a worker called last has ended kGrace ago, and the worker has not called
// since. The process of such a worker has nearly always ended, since the kernel
// closes its connections at once. Or it is stopped or cut off, and the server
// has ended a connection that answers no pings.
//
// Threads: safe to share.
class LostCallers {
 public:
  // The time in which a live worker whose stream broke calls again.
  static constexpr absl::Duration kGrace = absl::Milliseconds(100);

  // Records a call of a worker, on a stream (see Caller::stream()) or, if
  // `stream` is 0, an RPC of its own. No effect if a newer incarnation or a
  // later stream is known.
  void Called(uint64_t stream, int worker, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records the end of a stream.
  void Ended(uint64_t stream, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // The lost workers, ascending.
  std::vector<int> Workers(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Last {
    uint64_t incarnation = 0;
    uint64_t stream = 0;
    absl::Time ended = absl::InfiniteFuture();
  };

  mutable Mutex mutex_;
  std::map<int, Last> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_LOST_CALLERS_H_
