#include "server/state/file/worker_fences.h"

#include <algorithm>
#include <utility>

#include "server/state/tables/stored_word.h"

namespace lockstep::server {
namespace {

// The bit of a worker's word that marks the end of its input. The other bits
// are one more than the incarnation above which it is shut out, or 0.
constexpr uint64_t kInputEnded = uint64_t{1} << 62;

}  // namespace

void WorkerFences::KeepIn(absl::Span<std::byte> memory) {
  words_ = {reinterpret_cast<int64_t*>(memory.data()),
            memory.size() / sizeof(int64_t)};
  const size_t places = NumPlaces(memory.size());
  const size_t used =
      places == 0 ? 0 : std::min(static_cast<size_t>(words_[0]), places);
  for (size_t worker = 0; worker < used; ++worker) {
    const int64_t* words = Place(worker);
    if (words[0] == 0 && words[1] == 0) continue;
    // Both sources count: fences of this process from before it had a file, and
    // those of the file.
    Fence& fence = fences_[static_cast<int>(worker)];
    fence.expired = std::max(fence.expired, static_cast<uint64_t>(words[0]));
    const auto standing = static_cast<uint64_t>(words[1]);
    fence.input_ended = fence.input_ended || (standing & kInputEnded) != 0;
    const uint64_t shut_out = standing & (kInputEnded - 1);
    if (shut_out != 0 && !fence.shut_out.has_value()) {
      fence.shut_out = shut_out - 1;
    }
  }
  for (const auto& [worker, fence] : fences_) Keep(worker, fence);
}

void WorkerFences::Expire(int worker, uint64_t incarnation) {
  Fence& fence = fences_[worker];
  fence.expired = std::max(fence.expired, incarnation);
  // The chief has expired a process that was shut out: it knows the worker, so
  // its next process is admitted.
  if (fence.shut_out.has_value() && incarnation > *fence.shut_out) {
    fence.shut_out.reset();
  }
  Keep(worker, fence);
}

void WorkerFences::ShutOut(int worker, uint64_t above) {
  Fence& fence = fences_[worker];
  // The file holds it plus one, below the bit of the input.
  fence.shut_out = std::min(above, kInputEnded - 2);
  Keep(worker, fence);
}

void WorkerFences::EndInput(int worker) {
  Fence& fence = fences_[worker];
  fence.input_ended = true;
  Keep(worker, fence);
}

void WorkerFences::ForgetEndedInput() {
  for (auto& [worker, fence] : fences_) {
    if (!std::exchange(fence.input_ended, false)) continue;
    Keep(worker, fence);
  }
}

std::vector<WorkerStanding> WorkerFences::Standings() const {
  std::vector<WorkerStanding> standings;
  for (const auto& [worker, fence] : fences_) {
    if (!fence.shut_out.has_value() && !fence.input_ended) continue;
    standings.push_back({worker, fence.shut_out, fence.input_ended});
  }
  return standings;
}

WorkerFences::Fence WorkerFences::Find(int worker) const {
  const auto found = fences_.find(worker);
  return found == fences_.end() ? Fence() : found->second;
}

// The word that may admit the worker is written last: a process that is killed
// in between leaves the worker shut out.
void WorkerFences::Keep(int worker, const Fence& fence) {
  const auto at = static_cast<size_t>(worker);
  if (worker < 0 || at >= NumPlaces(words_.size() * sizeof(int64_t))) return;
  if (words_[0] <= worker) StoreWord(&words_[0], worker + 1);
  int64_t* words = Place(at);
  StoreWord(&words[0], static_cast<int64_t>(fence.expired));
  const uint64_t shut_out =
      fence.shut_out.has_value() ? *fence.shut_out + 1 : 0;
  StoreWord(&words[1], static_cast<int64_t>(
                           shut_out | (fence.input_ended ? kInputEnded : 0)));
}

}  // namespace lockstep::server
