#include "deploy/cli/logs/log_story.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

constexpr std::array<const char*, 5> kTypes = {"chief", "master", "ps",
                                               "worker", "evaluator"};
// Green, yellow, blue, magenta, cyan, and their bright ones.
constexpr std::array<int, 10> kColours = {32, 33, 34, 35, 36,
                                          92, 93, 94, 95, 96};
constexpr size_t kIndent = 4;
constexpr size_t kNarrowest = 20;

// The same colour in each call, since it depends on the name alone.
int ColourOf(absl::string_view task) {
  size_t sum = 0;
  for (const char c : task) sum = sum * 7 + static_cast<unsigned char>(c);
  return kColours[sum % kColours.size()];
}

const char* Mark(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "ERROR ";
    case LogLevel::kWarning:
      return "warning ";
    case LogLevel::kInfo:
      return "";
    case LogLevel::kDebug:
    case LogLevel::kTrace:
      return "debug ";
  }
  return "";
}

// Breaks `text` into lines: at spaces, or within a word that is too long.
std::string Broken(absl::string_view text, size_t columns) {
  std::string out;
  size_t room = columns;
  while (text.size() > room) {
    size_t end = text.rfind(' ', room);
    // A break within the indent would leave a line without text.
    if (end == absl::string_view::npos || end <= kIndent) end = room;
    // Never within a character of UTF-8: its later bytes are 10xxxxxx.
    while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
      --end;
    }
    absl::StrAppend(&out, text.substr(0, end), "\n", std::string(kIndent, ' '));
    text = absl::StripLeadingAsciiWhitespace(text.substr(end));
    room = columns - kIndent;
  }
  absl::StrAppend(&out, text);
  return out;
}

// True for a task of a filter, such as "worker 1" or, for all, "worker".
bool IsOf(const std::string& task, const std::string& wanted) {
  return task == wanted || absl::StartsWith(task, wanted + " ");
}

}  // namespace

bool LogFilter::Shows(const LogLine& line) const {
  if (line.level < level || line.time < since) return false;
  if (tasks.empty()) return true;
  return std::any_of(tasks.begin(), tasks.end(), [&](const std::string& task) {
    return IsOf(line.task, task);
  });
}

std::string LogFilter::Unknown(const std::set<std::string>& known) const {
  for (const std::string& wanted : tasks) {
    if (std::none_of(known.begin(), known.end(), [&](const std::string& task) {
          return IsOf(task, wanted);
        })) {
      return wanted;
    }
  }
  return "";
}

absl::StatusOr<std::string> ParseTask(absl::string_view text) {
  const std::string task = absl::StrReplaceAll(text, {{":", " "}});
  const size_t space = task.find(' ');
  const std::string type = task.substr(0, space);
  int index = 0;
  const bool known =
      std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
  const bool fits =
      space == std::string::npos ||
      (absl::SimpleAtoi(task.substr(space + 1), &index) && index >= 0);
  if (known && fits) return task;
  return absl::InvalidArgumentError(absl::StrCat(
      "--task is \"", Printable(text),
      "\"; name a task such as worker:1, or a type such as worker, ps or "
      "chief"));
}

absl::StatusOr<absl::Time> ParseSince(absl::string_view text, absl::Time now,
                                      absl::TimeZone zone) {
  absl::Duration age;
  // An age has a unit, and a time has none, so that no text is both.
  if (absl::ParseDuration(text, &age) && age >= absl::ZeroDuration()) {
    return now - age;
  }
  absl::Time time;
  for (const char* form : {"%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%dT%H:%M"}) {
    if (absl::ParseTime(form, text, zone, &time, nullptr)) return time;
  }
  const std::string today =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT", now, zone), text);
  for (const char* form : {"%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%dT%H:%M"}) {
    if (absl::ParseTime(form, today, zone, &time, nullptr)) return time;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--since is \"", Printable(text),
      "\"; write an age such as 10m, a time of today such as 11:37, or a time "
      "such as 2026-11-23T11:37:20"));
}

void LogStory::Add(std::vector<LogLine> lines) {
  lines_.insert(lines_.end(), std::make_move_iterator(lines.begin()),
                std::make_move_iterator(lines.end()));
}

std::vector<LogLine> LogStory::Take(absl::Time until) {
  // Stable, because several lines of a log may have one time.
  std::stable_sort(
      lines_.begin(), lines_.end(),
      [](const LogLine& a, const LogLine& b) { return a.time < b.time; });
  const auto end = std::upper_bound(
      lines_.begin(), lines_.end(), until,
      [](absl::Time time, const LogLine& line) { return time < line.time; });
  std::vector<LogLine> taken(std::make_move_iterator(lines_.begin()),
                             std::make_move_iterator(end));
  lines_.erase(lines_.begin(), end);
  return taken;
}

std::string ShownLine(const LogLine& line, size_t columns, bool colour,
                      absl::TimeZone zone) {
  const std::string time =
      line.time == absl::InfinitePast()
          ? "--:--:--.---"
          : absl::FormatTime("%H:%M:%E3S", line.time, zone);
  const std::string head = absl::StrCat(time, " ", line.task);
  std::string text =
      Broken(absl::StrCat(head, "  ", Mark(line.level), line.text),
             std::max(columns, kNarrowest));
  // Colours take no columns, so they are put in afterwards.
  if (colour && absl::StartsWith(text, head)) {
    text = absl::StrCat(time, " \x1b[", ColourOf(line.task), "m", line.task,
                        "\x1b[0m", text.substr(head.size()));
  }
  return text + "\n";
}

}  // namespace lockstep::cli
