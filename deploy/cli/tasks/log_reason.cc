#include "deploy/cli/tasks/log_reason.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {
namespace {

// Column of the level in "2026-11-23T11:37:20.123 error   worker 1: ...".
constexpr size_t kLevelColumn = 24;
constexpr char kErrorLevel[] = "error ";
// Start of the last line of a program that refuses its flags.
constexpr char kHint[] = "Try '";
constexpr char kTraceback[] = "Traceback (most recent call last)";

bool IsLogLine(absl::string_view line) {
  return line.size() > kLevelColumn && line[4] == '-' && line[10] == 'T' &&
         line[kLevelColumn - 1] == ' ' && absl::ascii_isdigit(line.front());
}

std::string Message(absl::string_view line) {
  if (!IsLogLine(line)) return std::string(line);
  const size_t colon = line.find(": ", kLevelColumn);
  if (colon == absl::string_view::npos) return std::string(line);
  return std::string(line.substr(colon + 2));
}

}  // namespace

std::string ReasonIn(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  // The last error, since a program logs it before it ends.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (IsLogLine(*line) &&
        absl::StartsWith(line->substr(kLevelColumn), kErrorLevel)) {
      return Message(*line);
    }
  }
  // Output without a level, such as the last line of a traceback.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!IsLogLine(*line) && !absl::StartsWith(*line, kHint)) return *line;
  }
  return Message(lines.back());
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
