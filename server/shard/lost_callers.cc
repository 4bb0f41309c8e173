#include "server/shard/lost_callers.h"

namespace lockstep::server {

void LostCallers::Called(uint64_t stream, int worker, uint64_t incarnation) {
  MutexLock lock(mutex_);
  Last& last = workers_[worker];
  // The streams of two incarnations have no order: the older process may have
  // opened one more before it ended.
  if (incarnation < last.incarnation) return;
  if (incarnation > last.incarnation || stream > last.stream) {
    last = {incarnation, stream};
  } else if (stream == 0) {
    last.ended = absl::InfiniteFuture();
  }
  // Else: a call that arrived before its stream ended may be served after that.
}

void LostCallers::Ended(uint64_t stream, absl::Time now) {
  MutexLock lock(mutex_);
  for (auto& [worker, last] : workers_) {
    if (last.stream == stream && stream != 0) last.ended = now;
  }
}

std::vector<int> LostCallers::Workers(absl::Time now) const {
  MutexLock lock(mutex_);
  std::vector<int> lost;
  for (const auto& [worker, last] : workers_) {
    if (now >= last.ended + kGrace) lost.push_back(worker);
  }
  return lost;
}

}  // namespace lockstep::server
