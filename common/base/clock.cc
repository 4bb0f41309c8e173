#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override {
    // Wall time plus steady time: comparable with other processes' logs, but
    // not moved by a change of the wall clock.
    return wall_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_);
  }

 private:
  const absl::Time wall_ = absl::Now();
  const std::chrono::steady_clock::time_point steady_ =
      std::chrono::steady_clock::now();
};

}  // namespace

const Clock& Clock::Real() {
  // Never destroyed: threads that outlive main() still read it.
  static const SteadyClock* clock = new SteadyClock();
  return *clock;
}

}  // namespace lockstep
