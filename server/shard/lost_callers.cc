#include "server/shard/lost_callers.h"

#include <utility>

namespace lockstep::server {

void LostCallers::Called(uint64_t stream, int worker, uint64_t incarnation) {
  if (stream == 0) return;
  MutexLock lock(mutex_);
  Last& last = workers_[worker];
  // The streams of two incarnations have no order: the older process may have
  // opened one more before it ended.
  if (incarnation < last.incarnation) return;
  // A call that arrived before its stream ended may be served after that.
  if (incarnation == last.incarnation && stream <= last.stream) return;
  last = {incarnation, stream};
}

void LostCallers::Ended(uint64_t stream) {
  MutexLock lock(mutex_);
  for (auto& [worker, last] : workers_) {
    if (last.stream == stream) last.ended = true;
  }
}

std::vector<int> LostCallers::Workers() const {
  MutexLock lock(mutex_);
  std::vector<int> lost;
  for (const auto& [worker, last] : workers_) {
    if (last.ended) lost.push_back(worker);
  }
  return lost;
}

}  // namespace lockstep::server
