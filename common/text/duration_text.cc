#include "common/text/duration_text.h"

namespace lockstep {

std::string DurationText(absl::Duration duration, absl::Duration unit) {
  const absl::Duration whole = absl::Trunc(duration, unit);
  // absl::FormatDuration() writes a zero without its unit.
  return whole == absl::ZeroDuration() ? "0s" : absl::FormatDuration(whole);
}

}  // namespace lockstep
