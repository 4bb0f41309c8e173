#include "common/base/retry_schedule.h"

#include <algorithm>

namespace lockstep {

RetrySchedule::RetrySchedule(int num_servers) : servers_(num_servers) {}

void RetrySchedule::Failed(int server, absl::Time now) {
  Server& s = servers_[server];
  s.due = now + s.pause;
  s.pause = std::min(2 * s.pause, kLongestPause);
}

void RetrySchedule::Answered(int server) { servers_[server] = Server(); }

bool RetrySchedule::Pauses(int server, absl::Time now) const {
  const absl::Time due = servers_[server].due;
  return due != absl::InfiniteFuture() && now < due;
}

std::vector<int> RetrySchedule::TakeDue(absl::Time now) {
  std::vector<int> due;
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].due > now) continue;
    servers_[i].due = absl::InfiniteFuture();
    due.push_back(static_cast<int>(i));
  }
  return due;
}

absl::Time RetrySchedule::next() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Server& server : servers_) next = std::min(next, server.due);
  return next;
}

}  // namespace lockstep
