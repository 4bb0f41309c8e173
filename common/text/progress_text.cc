#include "common/text/progress_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

// Work that seems to take longer has hardly begun.
constexpr double kLongest = 100 * 3600;

std::string TimeText(double seconds) {
  if (seconds < 120) return absl::StrFormat("%.0f s", std::ceil(seconds));
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

}  // namespace

std::string ProgressText(int64_t done, int64_t total, double seconds) {
  if (total <= 0 || done < 0) return "";
  const double share =
      static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const std::string text =
      absl::StrCat(", ", static_cast<int>(100 * share), " %");
  // Assumes that the rest goes on at the mean speed so far.
  const double left = share > 0 ? seconds / share - seconds : kLongest;
  if (share < 0.01 || seconds < 1 || left >= kLongest) return text;
  return absl::StrCat(text, ", ", TimeText(left), " to go");
}

}  // namespace lockstep
