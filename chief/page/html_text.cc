#include "chief/page/html_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/text/figure_text.h"
#include "common/text/plain_text.h"
#include "common/text/utf8.h"

namespace lockstep::chief {

std::string EscapeHtml(absl::string_view text) {
  std::string plain = OneLine(text, std::numeric_limits<size_t>::max());
  // The encoding is unknown, so no byte beyond ASCII has a meaning.
  if (!IsUtf8(plain)) {
    std::replace_if(
        plain.begin(), plain.end(),
        [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; },
        '?');
  }
  return absl::StrReplaceAll(plain, {{"&", "&amp;"},
                                     {"<", "&lt;"},
                                     {">", "&gt;"},
                                     {"\"", "&quot;"},
                                     {"'", "&#39;"}});
}

std::string ShortTime(absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  if (seconds < 1e-3) return absl::StrFormat("%.0f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  if (seconds < 10) return absl::StrFormat("%.3g s", seconds);
  return FormatAge(time);
}

std::string BytesText(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.3g kB", bytes / 1e3);
  if (bytes < 999.5e6) return absl::StrFormat("%.3g MB", bytes / 1e6);
  return absl::StrFormat("%.1f GB", bytes / 1e9);
}

std::string PercentText(double share) {
  return absl::StrFormat("%.0f %%", 100 * share);
}

std::string RateText(double rate) {
  return rate < 999.5 ? absl::StrFormat("%.3g", rate) : FormatCompact(rate);
}

std::string FigureText(double value) { return absl::StrFormat("%.4g", value); }

}  // namespace lockstep::chief
