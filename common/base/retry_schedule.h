#ifndef LOCKSTEP_COMMON_BASE_RETRY_SCHEDULE_H_
#define LOCKSTEP_COMMON_BASE_RETRY_SCHEDULE_H_

#include <vector>

#include "absl/time/time.h"

namespace lockstep {

// RetrySchedule says when each server that failed for a passing reason is to be
// asked again: after a pause that doubles with every failure in a row.
//
// Threads: belongs to the chief's loop.
class RetrySchedule {
 public:
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
  static constexpr absl::Duration kLongestPause = absl::Seconds(1);

  explicit RetrySchedule(int num_servers);

  // A call to `server` failed at `now`.
  void Failed(int server, absl::Time now);

  // `server` need not be asked before `due`, without having failed.
  void Postpone(int server, absl::Time due) { servers_[server].due = due; }

  // `server` answered, so that its next failure counts as the first.
  void Answered(int server);

  // Whether `server` has failed and is not to be asked yet.
  bool Pauses(int server, absl::Time now) const;

  // Returns the servers to ask now, and takes them off the schedule.
  std::vector<int> TakeDue(absl::Time now);

  // When TakeDue() will next return something; InfiniteFuture() for never.
  absl::Time next() const;

 private:
  struct Server {
    absl::Duration pause = kFirstPause;
    absl::Time due = absl::InfiniteFuture();
  };

  std::vector<Server> servers_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_RETRY_SCHEDULE_H_
