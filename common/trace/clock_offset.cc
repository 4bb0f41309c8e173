#include "common/trace/clock_offset.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

// True if one offset of the clocks is possible by both estimates.
bool Agree(const ClockOffset::Estimate& a, const ClockOffset::Estimate& b) {
  // As doubles: offsets are far apart if a clock is wrong by centuries.
  const double apart =
      std::abs(static_cast<double>(a.offset) - static_cast<double>(b.offset));
  return apart <= static_cast<double>(a.error) + static_cast<double>(b.error);
}

}  // namespace

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
  const Estimate& newest = last_[(count_ - 1) % kRoundTrips];
  Estimate best = newest;
  for (size_t i = 0; i < std::min(count_, kRoundTrips); ++i) {
    if (last_[i].error < best.error && Agree(last_[i], newest)) best = last_[i];
  }
  return best;
}

}  // namespace lockstep
