#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WAITING_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WAITING_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "tests/conformance/simulation/fiber.h"
#include "tests/conformance/simulation/world.h"

namespace lockstep::simulation {

// Waiting lets a process's main function, which runs in a fiber, wait for what
// events bring.
class Waiting {
 public:
  Waiting(World& world, int process) : world_(world), process_(process) {}

  void Start(std::function<void()> main) {
    fiber_ = std::make_unique<Fiber>(std::move(main));
    world_.AfterFor(process_, absl::ZeroDuration(), [this] { Wake(); });
  }

  // In the fiber.
  void Until(const std::function<bool()>& over) {
    while (!over()) fiber_->Pause();
  }
  void Sleep(absl::Duration time) {
    UntilOrFor(time, [] { return false; });
  }
  void UntilOrFor(absl::Duration time, const std::function<bool()>& over) {
    auto ended = std::make_shared<bool>(false);
    world_.AfterFor(process_, time, [this, ended, alive = Guard()] {
      if (alive.expired() || *ended) return;
      *ended = true;
      Wake();
    });
    Until([&] { return *ended || over(); });
    *ended = true;
  }
  // One call, to its end.
  template <typename Answer>
  absl::StatusOr<Answer> Call(int place,
                              std::function<void(World::Reply<Answer>)> serve,
                              const bool* cancelled = nullptr) {
    auto answer = std::make_shared<std::optional<absl::StatusOr<Answer>>>();
    world_.Call<Answer>(process_, place, std::move(serve),
                        [this, answer](absl::StatusOr<Answer> came) {
                          *answer = std::move(came);
                          Wake();
                        });
    Until([&] {
      return answer->has_value() || (cancelled != nullptr && *cancelled);
    });
    if (!answer->has_value()) return absl::CancelledError("cancelled");
    return **answer;
  }

  // Must be called by events that the fiber may wait for.
  void Wake() { fiber_->Resume(); }
  bool done() const { return fiber_->done(); }

 private:
  std::weak_ptr<int> Guard() const { return alive_; }

  World& world_;
  const int process_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::unique_ptr<Fiber> fiber_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WAITING_H_
