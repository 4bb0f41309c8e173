#include "common/rpc/poller_demand.h"

namespace lockstep {

void PollerDemand::Count(size_t bytes, absl::Time now) {
  PassTime(now);
  if (bytes >= kMuch) {
    last_large_ = now;
    one_is_enough_ = false;
    return;
  }
  if (++calls_ < kMany) return;
  // Absolute, so that a clock that was set back does not keep the threads awake
  // for long.
  one_is_enough_ = absl::AbsDuration(now - last_large_) > kPeriod;
  calls_ = 0;
  since_ = now;
}

void PollerDemand::PassTime(absl::Time now) {
  if (absl::AbsDuration(now - since_) <= kPeriod) return;
  one_is_enough_ = false;
  calls_ = 0;
  since_ = now;
}

}  // namespace lockstep
