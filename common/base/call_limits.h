#ifndef LOCKSTEP_COMMON_BASE_CALL_LIMITS_H_
#define LOCKSTEP_COMMON_BASE_CALL_LIMITS_H_

#include <algorithm>
#include <cstddef>

#include "absl/time/time.h"

namespace lockstep {

// The number of calls that a connection carries at a time. gRPC keeps further
// ones back, in the order in which they were started, until others have ended.
inline constexpr int kCallsOfAConnection = 256;

// The number of calls into which a transfer should be cut at most if it starts
// them all at once and their ends depend on each other. Parts that fill their
// calls badly make up to twice as many.
inline constexpr int kCallsAtOnce = 120;

// Returns the bytes of each call of a transfer of `total` bytes that starts all
// its calls at once; `usual`, where the calls need not be larger.
constexpr size_t CallBytes(size_t total, size_t usual) {
  return std::max(usual, total / kCallsAtOnce);
}

// As CallBytes(), for processes that share memory: the number of their calls
// determines the time. Enough calls remain to occupy all threads of a server,
// and none occupies one of them for long while others idle.
constexpr size_t MappedCallBytes(size_t total, size_t usual) {
  constexpr size_t kCalls = 16;
  constexpr size_t kLargest = size_t{4} << 20;
  return std::max(CallBytes(total, usual), std::min(total / kCalls, kLargest));
}

// The time after the end of a job that is done for which its servers stay, so
// that programs of users can pull the last values, and for which a worker
// tries.
inline constexpr absl::Duration kLastPulls = absl::Seconds(5);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CALL_LIMITS_H_
