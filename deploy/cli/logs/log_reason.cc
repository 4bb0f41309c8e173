#include "deploy/cli/logs/log_reason.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/text/log_form.h"

namespace lockstep::cli {
namespace {

// Start of the last line of a program that refuses its flags.
constexpr char kHint[] = "Try '";
constexpr char kTraceback[] = "Traceback (most recent call last)";

// Nothing for output that is no line of a log. Its time says nothing here, so
// that any zone will do.
std::optional<LogForm> FormOf(absl::string_view line) {
  return ParseLogForm(line, absl::UTCTimeZone());
}

}  // namespace

std::string ReasonIn(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  // The last error, since a program logs it before it ends.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::optional<LogForm> form = FormOf(*line);
    if (form.has_value() && form->level == LogLevel::kError) {
      return std::string(form->text);
    }
  }
  // Output without a level, such as the last line of a traceback.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!FormOf(*line).has_value() && !absl::StartsWith(*line, kHint)) {
      return *line;
    }
  }
  const std::optional<LogForm> last = FormOf(lines.back());
  return last.has_value() ? std::string(last->text) : lines.back();
}

std::vector<std::string> EndToShow(const std::vector<std::string>& lines,
                                   size_t most) {
  std::vector<std::string> shown;
  size_t traceback = 0;
  bool found = false;
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, kTraceback)) {
      traceback = shown.size();
      found = true;
    }
    const bool marks = line.find_first_not_of(" ^~") == std::string::npos &&
                       line.find_first_of("^~") != std::string::npos;
    if (!marks) shown.push_back(line);
  }
  size_t first = shown.size() - std::min(most, shown.size());
  if (found && shown.size() - traceback <= 4 * most) {
    first = std::min(first, traceback);
  }
  shown.erase(shown.begin(),
              shown.begin() + static_cast<std::ptrdiff_t>(first));
  return shown;
}

}  // namespace lockstep::cli
