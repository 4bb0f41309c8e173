#ifndef LOCKSTEP_COMMON_PROGRAM_RETRY_START_H_
#define LOCKSTEP_COMMON_PROGRAM_RETRY_START_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lockstep {

// A process retries to get its port for this long, and this often: the previous
// process of that port may still be ending.
inline constexpr absl::Duration kPortPatience = absl::Seconds(5);
inline constexpr absl::Duration kPortPause = absl::Milliseconds(200);

// Calls `start`, which returns an absl::StatusOr, until it returns another
// result than kUnavailable, or kPortPatience has passed; returns its last
// result. Calls `waits` with the error before the first pause.
template <typename Start>
auto RetryStart(
    const Start& start, const std::function<void(const absl::Status&)>& waits,
    const std::function<void(absl::Duration)>& pause = absl::SleepFor) {
  auto result = start();
  for (absl::Duration waited;
       absl::IsUnavailable(result.status()) && waited < kPortPatience;
       waited += kPortPause) {
    if (waited == absl::ZeroDuration()) waits(result.status());
    pause(kPortPause);
    result = start();
  }
  return result;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROGRAM_RETRY_START_H_
