#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::cli {

// Replaces all bytes that are not printable ASCII by '?', so that one byte is
// one column and outside text cannot control the terminal.
std::string Printable(absl::string_view text);

// Returns the first `columns` bytes; the last of them is "~" if anything was
// cut off.
std::string Clip(absl::string_view text, size_t columns);

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

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_
