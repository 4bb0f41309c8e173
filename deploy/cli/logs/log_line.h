#ifndef LOCKSTEP_DEPLOY_CLI_LOGS_LOG_LINE_H_
#define LOCKSTEP_DEPLOY_CLI_LOGS_LOG_LINE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/text/log_form.h"

namespace lockstep::cli {

// One line of one task.
struct LogLine {
  absl::Time time = absl::InfinitePast();
  LogLevel level = LogLevel::kInfo;
  std::string task;  // "worker 1"
  std::string text;  // without time, level and task; printable
};

// Lines are cut after so many bytes.
inline constexpr size_t kLongestLine = 16 << 10;

// LogReader makes lines of the bytes of one task's log: those that Lockstep
// writes, see ParseLogForm(), and any other output, which belongs to the time
// of the line before.
//
// Threads: not thread-safe.
class LogReader {
 public:
  // `task` is that of lines which name none. `began` is the time of lines
  // before the first with a time. Times are of `zone`.
  LogReader(std::string task, absl::Time began, absl::TimeZone zone);

  // Takes the next bytes of the log. Returns the lines that are complete; the
  // rest waits for its end.
  std::vector<LogLine> Read(absl::string_view bytes);

  // Returns the last line, of which no end has come, if it is not empty.
  std::optional<LogLine> End();

 private:
  LogLine Parse(absl::string_view line);

  const std::string task_;
  const absl::TimeZone zone_;
  absl::Time time_;
  LogLevel level_ = LogLevel::kInfo;
  std::string rest_;       // at most kLongestLine
  bool skipping_ = false;  // what follows of a line that was cut
};

// Returns the line in an object of `journalctl --output=json`; nothing for one
// that is no log line of a task of Lockstep.
std::optional<LogLine> FromJournal(absl::string_view json);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOGS_LOG_LINE_H_
