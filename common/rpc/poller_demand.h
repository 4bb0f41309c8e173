#ifndef LOCKSTEP_COMMON_RPC_POLLER_DEMAND_H_
#define LOCKSTEP_COMMON_RPC_POLLER_DEMAND_H_

#include <cstddef>

#include "absl/time/time.h"

namespace lockstep {

// PollerDemand says whether one thread is enough to serve a server's calls: as
// long as many come that move little. Then what the threads of gRPC tell one
// another costs more than what they do. A call that moves much has all of them
// needed at once, and for a while.
//
// Threads: not safe to share.
class PollerDemand {
 public:
  // Calls that move as many bytes as that need all threads: receiving, updating
  // and sending are worth doing side by side.
  static constexpr size_t kMuch = size_t{256} << 10;
  // So many calls within a period are many.
  static constexpr int kMany = 32;
  static constexpr absl::Duration kPeriod = absl::Milliseconds(50);

  // A call moves `bytes`. A time before that of other calls, as of a clock that
  // was set back, counts as long after them.
  void Count(size_t bytes, absl::Time now);

  // Time has passed, perhaps without calls.
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
