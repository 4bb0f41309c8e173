#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_CALL_DEADLINE_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_CALL_DEADLINE_H_

#include <cstddef>

#include "absl/time/time.h"

namespace lockstep::worker {

// Returns the deadline of a call that sends `bytes` of tensors one way: a pull
// or a push, or with 0 any other call of a worker to a server. The calls of all
// workers share the server's line, and a part may have 1 GiB: a call that ends
// before its bytes have arrived is repeated, and would never end otherwise.
inline absl::Duration CallDeadline(size_t bytes) {
  constexpr absl::Duration kShortest = absl::Seconds(10);
  constexpr double kSlowest = 1 << 20;  // bytes a second
  return kShortest + absl::Seconds(static_cast<double>(bytes) / kSlowest);
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_CALL_DEADLINE_H_
