#include "deploy/cli/logs/log_line.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/text/log_form.h"
#include "deploy/cli/text/text_format.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

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

LogReader::LogReader(std::string task, absl::Time began, absl::TimeZone zone)
    : task_(std::move(task)), zone_(zone), time_(began) {}

LogLine LogReader::Parse(absl::string_view line) {
  const std::optional<LogForm> form = ParseLogForm(line, zone_);
  // Output of a program, such as the lines of a traceback.
  if (!form.has_value()) return {time_, level_, task_, ShownText(line)};
  time_ = form->time;
  level_ = form->level;
  return {time_, level_, form->task.empty() ? task_ : std::string(form->task),
          ShownText(form->text)};
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
  const absl::string_view named = CutTaskOfLog(text);
  // Only lines through the journal's own protocol have the field; those of
  // standard output name the task in the text.
  if (line.task.empty()) line.task = std::string(named);
  if (!IsTaskInLog(line.task) || text.empty()) return std::nullopt;
  int priority = 6;
  if (absl::SimpleAtoi(FieldOf(entry, "PRIORITY"), &priority)) {
    line.level = LevelOf(priority);
  }
  line.text = ShownText(text);
  return line;
}

}  // namespace lockstep::cli
