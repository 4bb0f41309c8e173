#ifndef LOCKSTEP_COMMON_BASE_BACKOFF_H_
#define LOCKSTEP_COMMON_BASE_BACKOFF_H_

#include <vector>

#include "absl/time/time.h"

namespace lockstep {

// Backoff computes when to repeat a call to a server that failed with a
// temporary error: after a pause that doubles with every consecutive failure.
//
// Threads: not thread-safe; the chief's loop owns it.
class Backoff {
 public:
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
  static constexpr absl::Duration kLongestPause = absl::Seconds(1);

  explicit Backoff(int num_servers);

  // Records that a call to `server` failed at `now`.
  void Failed(int server, absl::Time now);

  // Schedules the next call to `server` at `due`, without counting a failure.
  void Postpone(int server, absl::Time due) { servers_[server].due = due; }

  // Records that `server` answered; its next failure counts as the first.
  void Answered(int server);

  // True if `server` has failed and its next call is not due yet.
  bool Pauses(int server, absl::Time now) const;

  // Returns the servers that are due, and removes them from the schedule.
  std::vector<int> TakeDue(absl::Time now);

  // Time at which TakeDue() next returns a server; InfiniteFuture() if never.
  absl::Time next() const;

 private:
  struct Server {
    absl::Duration pause = kFirstPause;
    absl::Time due = absl::InfiniteFuture();
  };

  std::vector<Server> servers_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_BACKOFF_H_
