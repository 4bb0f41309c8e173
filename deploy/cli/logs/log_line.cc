#include "deploy/cli/logs/log_line.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "deploy/cli/text/text_format.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

// Columns of "2026-11-23T11:37:20.123 error   worker 1: text".
constexpr size_t kTimeLength = 23;
constexpr size_t kLevelColumn = 24;
constexpr size_t kTaskColumn = 32;
constexpr size_t kLongestTask = 32;

bool IsTask(absl::string_view name) {
  const size_t space = name.rfind(' ');
  int index = 0;
  return space != absl::string_view::npos && name.size() <= kLongestTask &&
         space > 0 && absl::ascii_islower(name.front()) &&
         absl::SimpleAtoi(name.substr(space + 1), &index) && index >= 0;
}

// Cuts "worker 1: " off `text` and returns "worker 1"; "" if there is none.
std::string CutTask(absl::string_view& text) {
  const size_t colon = text.find(": ");
  if (colon == absl::string_view::npos || !IsTask(text.substr(0, colon))) {
    return "";
  }
  std::string task(text.substr(0, colon));
  text.remove_prefix(colon + 2);
  return task;
}

std::string ShownText(absl::string_view text) {
  return Printable(absl::StripTrailingAsciiWhitespace(text));
}

// Syslog's priorities.
LogLevel LevelOf(int priority) {
  if (priority <= 3) return LogLevel::kError;
  if (priority == 4) return LogLevel::kWarning;
  return priority <= 6 ? LogLevel::kInfo : LogLevel::kDebug;
}

// journalctl writes a field that is no UTF-8 as a list of bytes, and one that
// is too long as null: both count as empty.
std::string FieldOf(const nlohmann::json& entry, const char* name) {
  const auto field = entry.find(name);
  if (field == entry.end() || !field->is_string()) return "";
  return field->get<std::string>();
}

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

LogReader::LogReader(std::string task, absl::Time began, absl::TimeZone zone)
    : task_(std::move(task)), zone_(zone), time_(began) {}

LogLine LogReader::Parse(absl::string_view line) {
  absl::Time time;
  if (line.size() > kTaskColumn && line[kLevelColumn - 1] == ' ' &&
      absl::ParseTime("%Y-%m-%dT%H:%M:%E*S", line.substr(0, kTimeLength), zone_,
                      &time, nullptr)) {
    absl::string_view rest = line.substr(kLevelColumn);
    const absl::string_view level = rest.substr(0, rest.find(' '));
    if (const auto found = LevelNamed(level); found.has_value()) {
      time_ = time;
      level_ = *found;
      rest = absl::StripLeadingAsciiWhitespace(rest.substr(level.size()));
      std::string task = CutTask(rest);
      return {time_, level_, task.empty() ? task_ : std::move(task),
              ShownText(rest)};
    }
  }
  // Output of a program, such as the lines of a traceback.
  return {time_, level_, task_, ShownText(line)};
}

std::vector<LogLine> LogReader::Read(absl::string_view bytes) {
  std::vector<LogLine> lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    if (!skipping_) {
      // A program may write without line feeds; the memory for its line is
      // bounded.
      absl::StrAppend(&rest_, part.substr(0, kLongestLine - rest_.size()));
      skipping_ = rest_.size() == kLongestLine;
    }
    if (end == absl::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    if (std::optional<LogLine> line = End()) lines.push_back(*std::move(line));
  }
  return lines;
}

std::optional<LogLine> LogReader::End() {
  skipping_ = false;
  const std::string line = std::exchange(rest_, "");
  // Blank lines, as tracebacks have them, say nothing among the lines of other
  // tasks.
  if (absl::StripAsciiWhitespace(line).empty()) return std::nullopt;
  return Parse(line);
}

std::optional<LogLine> FromJournal(absl::string_view json) {
  const auto entry = nlohmann::json::parse(json.begin(), json.end(), nullptr,
                                           /*allow_exceptions=*/false);
  if (!entry.is_object()) return std::nullopt;
  int64_t time = 0;
  if (!absl::SimpleAtoi(FieldOf(entry, "__REALTIME_TIMESTAMP"), &time)) {
    return std::nullopt;
  }
  LogLine line;
  // The time at which the journal received the line.
  line.time = absl::FromUnixMicros(time);
  line.task = FieldOf(entry, "LOCKSTEP_TASK");
  const std::string message = FieldOf(entry, "MESSAGE").substr(0, kLongestLine);
  absl::string_view text = message;
  const std::string named = CutTask(text);
  // Only lines through the journal's own protocol have the field; those of
  // standard output name the task in the text.
  if (line.task.empty()) line.task = named;
  if (!IsTask(line.task) || text.empty()) return std::nullopt;
  int priority = 6;
  if (absl::SimpleAtoi(FieldOf(entry, "PRIORITY"), &priority)) {
    line.level = LevelOf(priority);
  }
  line.text = ShownText(text);
  return line;
}

}  // namespace lockstep::cli
