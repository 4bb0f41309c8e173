#include "common/text/log_form.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Columns of "2026-11-23T11:37:20.123 error   worker 1: text".
constexpr size_t kLogTimeLength = 23;
constexpr size_t kLogLevelColumn = 24;
constexpr size_t kLogTaskColumn = 32;
constexpr size_t kLongestTaskInLog = 32;

}  // namespace

std::optional<LogLevel> LevelNamed(absl::string_view name) {
  if (name == "trace") return LogLevel::kTrace;
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning" || name == "warn") return LogLevel::kWarning;
  if (name == "error" || name == "err" || name == "critical") {
    return LogLevel::kError;
  }
  return std::nullopt;
}

std::string InfoLogHead(absl::Time time, absl::TimeZone zone) {
  return absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3S", time, zone),
                      " info    ");
}

std::optional<LogForm> ParseLogForm(absl::string_view line,
                                    absl::TimeZone zone) {
  LogForm form;
  if (line.size() <= kLogTaskColumn || line[kLogLevelColumn - 1] != ' ' ||
      !absl::ParseTime("%Y-%m-%dT%H:%M:%E*S", line.substr(0, kLogTimeLength),
                       zone, &form.time, nullptr)) {
    return std::nullopt;
  }
  absl::string_view rest = line.substr(kLogLevelColumn);
  const absl::string_view name = rest.substr(0, rest.find(' '));
  const std::optional<LogLevel> level = LevelNamed(name);
  if (!level.has_value()) return std::nullopt;
  form.level = *level;
  form.text = absl::StripLeadingAsciiWhitespace(rest.substr(name.size()));
  form.task = CutTaskOfLog(form.text);
  return form;
}

bool IsTaskInLog(absl::string_view name) {
  const size_t space = name.rfind(' ');
  int index = 0;
  return space != absl::string_view::npos && name.size() <= kLongestTaskInLog &&
         space > 0 && absl::ascii_islower(name.front()) &&
         absl::SimpleAtoi(name.substr(space + 1), &index) && index >= 0;
}

absl::string_view CutTaskOfLog(absl::string_view& text) {
  const size_t colon = text.find(": ");
  if (colon == absl::string_view::npos || !IsTaskInLog(text.substr(0, colon))) {
    return "";
  }
  const absl::string_view task = text.substr(0, colon);
  text.remove_prefix(colon + 2);
  return task;
}

}  // namespace lockstep
