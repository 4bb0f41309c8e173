#ifndef LOCKSTEP_SERVER_SHARD_LOST_CALLERS_H_
#define LOCKSTEP_SERVER_SHARD_LOST_CALLERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "common/base/mutex.h"

namespace lockstep::server {

// LostCallers finds the workers whose connection has broken: the stream on
// which a worker called last has ended, and the worker has called on no later
// one. The process of such a worker has nearly always ended, since the kernel
// closes its connections at once; a host that loses its power closes none.
//
// Threads: safe to share.
class LostCallers {
 public:
  // Records a call of a worker on a stream (see Caller::stream()). No effect if
  // `stream` is 0, or if a newer incarnation or a later stream is known.
  void Called(uint64_t stream, int worker, uint64_t incarnation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records the end of a stream.
  void Ended(uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // The lost workers, ascending.
  std::vector<int> Workers() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Last {
    uint64_t incarnation = 0;
    uint64_t stream = 0;
    bool ended = false;
  };

  mutable Mutex mutex_;
  std::map<int, Last> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_LOST_CALLERS_H_
