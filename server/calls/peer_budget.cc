#include "server/calls/peer_budget.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace lockstep::server {

struct PeerBudget::State {
  explicit State(size_t most) : limit(most) {}

  bool Add(const std::string& peer, size_t bytes) {
    MutexLock lock(mutex);
    const auto found = held.find(peer);
    const size_t before = found == held.end() ? 0 : found->second;
    if (before > 0 && (before > limit || bytes > limit - before)) return false;
    held[peer] = before + bytes;
    return true;
  }

  void Remove(const std::string& peer, size_t bytes) {
    MutexLock lock(mutex);
    const auto found = held.find(peer);
    found->second -= bytes;
    if (found->second == 0) held.erase(found);
  }

  const size_t limit;
  Mutex mutex;
  std::map<std::string, size_t> held ABSL_GUARDED_BY(mutex);
};

PeerBudget::PeerBudget(size_t limit) : state_(std::make_shared<State>(limit)) {}

size_t PeerBudget::limit() const { return state_->limit; }

std::shared_ptr<void> PeerBudget::Take(const std::string& peer, size_t bytes) {
  if (bytes == 0) return std::make_shared<int>();  // nothing to give back
  if (!state_->Add(peer, bytes)) return nullptr;
  return {state_.get(),
          [state = state_, peer, bytes](void*) { state->Remove(peer, bytes); }};
}

}  // namespace lockstep::server
