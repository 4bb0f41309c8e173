#ifndef LOCKSTEP_COMMON_TEXT_LOG_FORM_H_
#define LOCKSTEP_COMMON_TEXT_LOG_FORM_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// The form of the lines in logs of Lockstep's programs, for those that write
// and read them: "2026-11-23T11:37:20.123 info    worker 1: text".
namespace lockstep {

// How serious a line is, as for InitLog().
enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

// Returns the level of that name, also of "warn", "err" and "critical".
std::optional<LogLevel> LevelNamed(absl::string_view name);

// The time and the level at the start of a line, as a pattern of spdlog.
inline constexpr char kLogHeadPattern[] = "%Y-%m-%dT%H:%M:%S.%e %^%-7l%$ ";

// Returns the time and the level at the start of a line of level info.
std::string InfoLogHead(absl::Time time, absl::TimeZone zone);

// A line without its end. The views point into it.
struct LogForm {
  absl::Time time;
  LogLevel level = LogLevel::kInfo;
  absl::string_view task;  // "worker 1"; empty if the line names none
  absl::string_view text;
};

// Returns the parts of a line of a log; nothing for other output. Its time is
// of `zone`.
std::optional<LogForm> ParseLogForm(absl::string_view line,
                                    absl::TimeZone zone);

// True for the name of a task as lines have it, such as "worker 1".
bool IsTaskInLog(absl::string_view name);

// Cuts "worker 1: " off `text` and returns "worker 1"; "" if there is none.
absl::string_view CutTaskOfLog(absl::string_view& text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_LOG_FORM_H_
