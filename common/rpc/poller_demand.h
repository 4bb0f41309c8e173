#ifndef LOCKSTEP_COMMON_RPC_POLLER_DEMAND_H_
#define LOCKSTEP_COMMON_RPC_POLLER_DEMAND_H_

#include <cstddef>

#include "absl/time/time.h"

namespace lockstep {

// PollerDemand decides if one thread is enough to serve a server's calls: it
// is, while many small calls arrive, because the threads of gRPC then spend
// more time on waking each other than on the calls. After a large call all
// threads are needed at once, and for a while.
//
// Threads: not thread-safe.
class PollerDemand {
 public:
  // Calls of at least this many bytes need all threads: receiving, updating and
  // sending gain from running in parallel.
  static constexpr size_t kMuch = size_t{256} << 10;
  // This number of calls within a period counts as many.
  static constexpr int kMany = 32;
  static constexpr absl::Duration kPeriod = absl::Milliseconds(50);

  // Records a call of `bytes` at `now`. If `now` is before an earlier call,
  // because a clock was set back, it counts as long after that call.
  void Count(size_t bytes, absl::Time now);

  // Records that time has passed, possibly without calls.
  void PassTime(absl::Time now);

  bool one_is_enough() const { return one_is_enough_; }

 private:
  bool one_is_enough_ = false;
  int calls_ = 0;  // since `since_`
  absl::Time since_ = absl::InfinitePast();
  absl::Time last_large_ = absl::InfinitePast();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_POLLER_DEMAND_H_
