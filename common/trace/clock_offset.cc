#include "common/trace/clock_offset.h"

#include <algorithm>

namespace lockstep {

void ClockOffset::Note(int64_t sent, int64_t received, int64_t other) {
  if (received < sent) return;
  // Rounded up, so that the error holds.
  const int64_t half = (received - sent + 1) / 2;
  // The other clock was read somewhere in the round trip: assumes the middle,
  // which is wrong by half of it at most.
  last_[count_ % kRoundTrips] = {other - (sent + half), half};
  ++count_;
}

ClockOffset::Estimate ClockOffset::Get() const {
  if (count_ == 0) return {0, -1};
  const auto* end = last_.begin() + std::min(count_, kRoundTrips);
  return *std::min_element(
      last_.begin(), end,
      [](const Estimate& a, const Estimate& b) { return a.error < b.error; });
}

}  // namespace lockstep
