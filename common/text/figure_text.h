#ifndef LOCKSTEP_COMMON_TEXT_FIGURE_TEXT_H_
#define LOCKSTEP_COMMON_TEXT_FIGURE_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace lockstep {

// Returns "61.3 s": for figures that are compared.
std::string FormatSeconds(absl::Duration duration);

// Returns "0.2 s", "95 s", "12 min", "3.4 h": for ages.
std::string FormatAge(absl::Duration age);

// Returns "0:12", "1:02:03"; "--:--" beyond 99 hours.
std::string FormatClock(absl::Duration duration);

// Returns "950", "12.3k", "1.2M", "3.4G".
std::string FormatCompact(double value);

// Returns `value` with `digits` after the point; "nan" and "inf" as they are;
// with an exponent from a million on.
std::string FormatFigure(double value, int digits);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_FIGURE_TEXT_H_
