#include "server/state/file/worker_fences.h"

#include <algorithm>

#include "server/state/tables/stored_word.h"

namespace lockstep::server {

void WorkerFences::KeepIn(absl::Span<std::byte> memory) {
  words_ = {reinterpret_cast<int64_t*>(memory.data()),
            memory.size() / sizeof(int64_t)};
  const size_t places = NumPlaces(memory.size());
  const size_t used =
      places == 0 ? 0 : std::min(static_cast<size_t>(words_[0]), places);
  for (size_t worker = 0; worker < used; ++worker) {
    const int64_t* words = Place(worker);
    if (words[0] == 0 && words[1] == 0) continue;
    Fence& fence = fences_[static_cast<int>(worker)];
    fence.expired = std::max(fence.expired, static_cast<uint64_t>(words[0]));
    fence.shut_out = fence.shut_out || words[1] != 0;
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

// A process that is killed in between leaves the worker shut out: what lets it
// in is written last.
void WorkerFences::Keep(int worker, const Fence& fence) {
  const auto at = static_cast<size_t>(worker);
  if (worker < 0 || at >= NumPlaces(words_.size() * sizeof(int64_t))) return;
  if (words_[0] <= worker) StoreWord(&words_[0], worker + 1);
  int64_t* words = Place(at);
  StoreWord(&words[0], static_cast<int64_t>(fence.expired));
  StoreWord(&words[1], fence.shut_out ? 1 : 0);
}

}  // namespace lockstep::server
