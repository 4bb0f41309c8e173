#include "common/base/backoff.h"

#include <algorithm>

namespace lockstep {

Backoff::Backoff(int num_servers) : servers_(num_servers) {}

void Backoff::Failed(int server, absl::Time now) {
  Server& s = servers_[server];
  s.due = now + s.pause;
  s.pause = std::min(2 * s.pause, kLongestPause);
}

void Backoff::Answered(int server) { servers_[server] = Server(); }

bool Backoff::Pauses(int server, absl::Time now) const {
  const absl::Time due = servers_[server].due;
  // InfiniteFuture: a call is under way, or none has failed.
  return due != absl::InfiniteFuture() && now < due;
}

std::vector<int> Backoff::TakeDue(absl::Time now) {
  std::vector<int> due;
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].due > now) continue;
    // The caller makes the call now; only another failure schedules the next
    // one.
    servers_[i].due = absl::InfiniteFuture();
    due.push_back(static_cast<int>(i));
  }
  return due;
}

absl::Time Backoff::next() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Server& server : servers_) next = std::min(next, server.due);
  return next;
}

}  // namespace lockstep
