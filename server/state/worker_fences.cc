#include "server/state/worker_fences.h"

#include <algorithm>

#include "server/state/stored_word.h"

namespace lockstep {

void WorkerFences::KeepIn(absl::Span<std::byte> memory) {
  words_ = {reinterpret_cast<int64_t*>(memory.data()),
            memory.size() / kBytesPerWorker * 2};
  for (size_t i = 0; i < words_.size(); i += 2) {
    if (words_[i] == 0 && words_[i + 1] == 0) continue;
    Fence& fence = fences_[static_cast<int>(i / 2)];
    fence.expired = std::max(fence.expired, static_cast<uint64_t>(words_[i]));
    fence.shut_out = fence.shut_out || words_[i + 1] != 0;
  }
  for (const auto& [worker, fence] : fences_) Keep(worker, fence);
}

void WorkerFences::Expire(int worker, uint64_t incarnation) {
  Fence& fence = fences_[worker];
  fence.expired = std::max(fence.expired, incarnation);
  if (incarnation > 0) fence.shut_out = false;
  Keep(worker, fence);
}

void WorkerFences::ShutOut(int worker) {
  Fence& fence = fences_[worker];
  fence.shut_out = true;
  Keep(worker, fence);
}

WorkerFences::Fence WorkerFences::Find(int worker) const {
  const auto found = fences_.find(worker);
  return found == fences_.end() ? Fence() : found->second;
}

// The gate is opened last, so that a process killed in between leaves it shut.
void WorkerFences::Keep(int worker, const Fence& fence) {
  const size_t at = 2 * static_cast<size_t>(worker);
  if (worker < 0 || at >= words_.size()) return;
  StoreWord(&words_[at], static_cast<int64_t>(fence.expired));
  StoreWord(&words_[at + 1], fence.shut_out ? 1 : 0);
}

}  // namespace lockstep
