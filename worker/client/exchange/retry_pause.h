#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_RETRY_PAUSE_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_RETRY_PAUSE_H_

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/passing_error.h"

namespace lockstep::worker {

// RetryPause is the pause of a call that is repeated until its server answers.
// It is short, since all workers wait while a server is away for a second, and
// doubles for a server that is away for long.
//
// Threads: not thread-safe.
class RetryPause {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(100);
  static constexpr absl::Duration kLongest = absl::Milliseconds(300);

  // Returns the pause after `failure`, the next one; nullopt: the call must not
  // be repeated.
  std::optional<absl::Duration> After(const absl::Status& failure) {
    if (!IsPassing(failure)) return std::nullopt;
    return std::exchange(next_, std::min(2 * next_, kLongest));
  }

 private:
  absl::Duration next_ = kFirst;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_RETRY_PAUSE_H_
