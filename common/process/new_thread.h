#ifndef LOCKSTEP_COMMON_PROCESS_NEW_THREAD_H_
#define LOCKSTEP_COMMON_PROCESS_NEW_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace lockstep {

// Starts a thread that calls `body`.
//
//   kResourceExhausted  the system has no more threads; names its limits
absl::StatusOr<std::thread> NewThread(std::function<void()> body);

// Calls `body` with each number from 0 to `count` - 1, all at once, and waits
// for all. If the system has too few threads, the caller's makes the remaining
// calls one after the other.
void CallAtOnce(int count, const std::function<void(int number)>& body);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_NEW_THREAD_H_
