#ifndef LOCKSTEP_DEPLOY_CLI_LOGS_LOG_STORY_H_
#define LOCKSTEP_DEPLOY_CLI_LOGS_LOG_STORY_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "deploy/cli/logs/log_line.h"

namespace lockstep::cli {

// Which lines are shown.
struct LogFilter {
  std::vector<std::string>
      tasks{};  // "worker 1", or "worker" for all; none: all
  LogLevel level = LogLevel::kTrace;  // and above
  absl::Time since = absl::InfinitePast();

  bool Shows(const LogLine& line) const;

  // Returns the first of `tasks` that is none of `known`, such as "worker 9";
  // empty: each of them is there.
  std::string Unknown(const std::set<std::string>& known) const;
};

// Returns a task in the form of LogFilter::tasks, from a text such as
// "worker:1", "worker 1" or "worker".
//
//   kInvalidArgument  another form
absl::StatusOr<std::string> ParseTask(absl::string_view text);

// Returns the time of a text: an age such as "90s" or "2h", a time of today as
// "11:37" or "11:37:20", or "2026-11-23T11:37:20" with or without seconds.
//
//   kInvalidArgument  another form
absl::StatusOr<absl::Time> ParseSince(absl::string_view text, absl::Time now,
                                      absl::TimeZone zone);

// LogStory puts the lines of many logs into the order of their times. Lines of
// one time stay in the order in which they were added.
//
// Threads: not thread-safe.
class LogStory {
 public:
  // Adds lines of one log, in its order.
  void Add(std::vector<LogLine> lines);

  // Takes the lines out that are at most of the time `until`, in order.
  std::vector<LogLine> Take(absl::Time until);

 private:
  std::vector<LogLine> lines_;
};

// Returns a line for people: time, level unless it is info, task and text. A
// line longer than `columns` is wrapped, its continuation indented. With
// `colour` each task's name is shown in a colour of its own.
std::string ShownLine(const LogLine& line, size_t columns, bool colour,
                      absl::TimeZone zone);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOGS_LOG_STORY_H_
