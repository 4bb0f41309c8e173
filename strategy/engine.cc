#include "strategy/engine.h"

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/process/new_thread.h"
#include "strategy/meeting.h"
#include "strategy/replica.h"

namespace lockstep::strategy {
namespace {

// Where a thread is: in a replica, across the replicas of an engine, or in
// neither.
struct Context {
  Replica* replica = nullptr;
  const Engine* across = nullptr;
};
thread_local Context current;

class ScopedContext {
 public:
  explicit ScopedContext(Context context)
      : before_(std::exchange(current, context)) {}
  ~ScopedContext() { current = before_; }
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const Context before_;
};

Placement DevicesOf(const StrategyOptions& options) {
  if (!options.devices.empty()) return {options.devices};
  Placement placement;
  for (int r = 0; r < options.replicas; ++r) {
    placement.devices.push_back(absl::StrCat("cpu:", r));
  }
  return placement;
}

}  // namespace

Engine::Engine(const StrategyOptions& options,
               std::unique_ptr<Collective> workers)
    : options_(options),
      workers_(std::move(workers)),
      worker_devices_(DevicesOf(options)),
      group_(options, workers_.get()),
      own_(options, nullptr),
      variables_(options.kind, worker_devices_, workers_ != nullptr) {}

absl::Status Engine::RunReplicas(
    absl::FunctionRef<absl::Status(Replica&)> work) {
  const auto count = static_cast<size_t>(options_.replicas);
  Meeting meeting(count);
  const auto run = [&](size_t local) {
    Replica replica(*this, meeting, local);
    const ScopedContext context({&replica, nullptr});
    meeting.End(local, work(replica));
  };
  std::vector<std::thread> threads;
  for (size_t local = 1; local < count; ++local) {
    absl::StatusOr<std::thread> thread =
        NewThread([&run, local] { run(local); });
    if (thread.ok()) {
      threads.push_back(*std::move(thread));
    } else {
      meeting.End(local, thread.status());
    }
  }
  // Replica 0 runs in this thread, so a strategy of one replica starts none.
  run(0);
  for (std::thread& thread : threads) thread.join();
  return meeting.Outcome();
}

absl::Status Engine::Across(absl::FunctionRef<absl::Status()> work) const {
  if (current.replica != nullptr) {
    return absl::FailedPreconditionError(
        "a replica's function must not act across replicas by itself; use "
        "Replica::Merge()");
  }
  // The same strategy may be entered again, as a scope of TensorFlow may.
  if (current.across != nullptr && current.across != this) {
    return absl::FailedPreconditionError(
        "this thread acts across the replicas of another strategy; return from "
        "its function first");
  }
  const ScopedContext context({nullptr, this});
  return work();
}

// Checks nothing: the thread is in a replica, which Across() refuses.
void Engine::AcrossFromReplica(absl::FunctionRef<void()> work) const {
  const ScopedContext context({nullptr, this});
  work();
}

Engine& DefaultEngine() {
  // Never destroyed: threads may still use it while the process exits.
  static auto& engine = *new Engine(
      {.kind = Kind::kDefault, .replicas = 1, .devices = {}}, nullptr);
  return engine;
}

Replica* CurrentReplica() {
  if (current.replica != nullptr) return current.replica;
  if (current.across != nullptr) return nullptr;
  // One for each thread: threads without a strategy have nothing to do with
  // each other, but calls through one Meeting would meet.
  thread_local Meeting alone(1);
  thread_local Replica replica(DefaultEngine(), alone, 0);
  return &replica;
}

}  // namespace lockstep::strategy
