#include "common/text/figure_text.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace lockstep {

std::string FormatSeconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

std::string FormatAge(absl::Duration age) {
  const double seconds = absl::ToDoubleSeconds(age);
  // 9.95 would be rounded to "10.0 s".
  if (seconds < 9.95) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 120) return absl::StrFormat("%.0f s", seconds);
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

std::string FormatClock(absl::Duration duration) {
  if (duration > absl::Hours(99)) return "--:--";
  // Rounded up: a remaining time shows 0:00 only when it is over.
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(
      duration < absl::ZeroDuration() ? absl::ZeroDuration() : duration,
      absl::Seconds(1)));
  const int64_t minutes = seconds / 60;
  if (minutes < 60) return absl::StrFormat("%d:%02d", minutes, seconds % 60);
  return absl::StrFormat("%d:%02d:%02d", minutes / 60, minutes % 60,
                         seconds % 60);
}

std::string FormatCompact(double value) {
  const double size = std::fabs(value);
  // The limits are those from which rounding would give four digits before the
  // unit. Negated, so that NaN is printed here too.
  if (!(size >= 999.5)) return absl::StrFormat("%.0f", value);
  if (size < 999'950) return absl::StrFormat("%.1fk", value / 1e3);
  if (size < 999'950e3) return absl::StrFormat("%.1fM", value / 1e6);
  return absl::StrFormat("%.1fG", value / 1e9);
}

std::string FormatFigure(double value, int digits) {
  if (std::isfinite(value) && std::fabs(value) >= 1e6) {
    return absl::StrFormat("%.*e", digits, value);
  }
  return absl::StrFormat("%.*f", digits, value);
}

}  // namespace lockstep
