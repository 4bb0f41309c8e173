#ifndef LOCKSTEP_WORKER_CLIENT_EXCHANGE_LAST_ANSWERS_H_
#define LOCKSTEP_WORKER_CLIENT_EXCHANGE_LAST_ANSWERS_H_

#include <algorithm>

#include "absl/time/time.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// LastAnswers decides when a client gives up the answers to a push: when they
// have not come soon after it was told that training is over. The push may have
// counted in the last step; its counts then say stale.
//
// Threads: not thread-safe.
class LastAnswers {
 public:
  // The answers to the push that has made the last step may come after the
  // answer that training is over.
  static constexpr absl::Duration kLongest = absl::Milliseconds(500);

  // The counts of a push that was given up.
  static PushCounts GivenUp() { return {.stale = 1}; }

  // Tells whether the answers are given up at `now`. Must be called whenever
  // `training_is_over` may have become true, and kLongest after that.
  bool GivesUp(bool training_is_over, absl::Time now) {
    if (!training_is_over) return false;
    over_since_ = std::min(over_since_, now);
    return now >= over_since_ + kLongest;
  }

 private:
  absl::Time over_since_ = absl::InfiniteFuture();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_EXCHANGE_LAST_ANSWERS_H_
