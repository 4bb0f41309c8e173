#include "deploy/cli/logs/logs_command.h"

#include <stdio.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "deploy/cli/logs/log_tail.h"
#include "deploy/cli/tasks/log_directory.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kPollEvery = absl::Milliseconds(200);
// Processes write their lines at once; so much later none is missing.
constexpr absl::Duration kHoldBack = absl::Milliseconds(100);
// exec: no shell stays between this process and journalctl.
constexpr char kJournal[] =
    "exec journalctl --output=json --no-pager --unit='lockstep-*' "
    "--since=@";

void Show(const std::vector<LogLine>& lines, const LogFilter& filter,
          Terminal& terminal) {
  const size_t columns = terminal.Columns();
  std::string text;
  for (const LogLine& line : lines) {
    if (!filter.Shows(line)) continue;
    absl::StrAppend(&text, ShownLine(line, columns, terminal.colour(),
                                     absl::LocalTimeZone()));
  }
  if (!text.empty()) terminal.Print(text);
}

// Adds the tasks of `lines` to `known`.
std::vector<LogLine> Noted(std::vector<LogLine> lines,
                           std::set<std::string>& known) {
  for (const LogLine& line : lines) known.insert(line.task);
  return lines;
}

// Returns the exit code: 1, with a message that names `place` and the tasks in
// it, if the filter wants one that has no line there.
int CheckTasks(const LogFilter& filter, const std::set<std::string>& known,
               const std::string& place, std::ostream& err) {
  const std::string unknown = filter.Unknown(known);
  if (unknown.empty()) return 0;
  err << "lockstep logs: no line of --task \"" << unknown << "\" in " << place
      << ", which has lines of " << absl::StrJoin(known, ", ") << "\n";
  return 1;
}

struct ClosePipe {
  // The exit code is not looked at: a journal without lines is reported in any
  // case.
  void operator()(FILE* pipe) const { pclose(pipe); }
};

}  // namespace

LogsCommand::LogsCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "logs",
          "Shows the logs of all tasks in the order of time: those of a "
          "`lockstep run`, or of systemd units from the journal.")) {
  app_.add_option("--log_dir", log_dir_, "Log directory of a `lockstep run`.");
  app_.add_flag("--journal", journal_,
                "The units lockstep-* in this machine's journal.");
  app_.add_flag("--follow,-f", follow_,
                "Go on with new lines until the run has ended.");
  app_.add_option("--task", tasks_,
                  "Only this task, such as worker:1, or type, such as ps; may "
                  "be repeated.");
  app_.add_option("--since", since_,
                  "Only lines of this time or later: an age such as 10m, or a "
                  "time such as 11:37 or 2026-11-23T11:37:20.");
  app_.add_option("--level", level_,
                  "Only lines of this level or above: trace, debug, info, "
                  "warning, error.")
      ->capture_default_str();
}

absl::StatusOr<LogFilter> LogsCommand::Filter(absl::Time now) const {
  LogFilter filter;
  for (const std::string& task : tasks_) {
    LOCKSTEP_ASSIGN_OR_RETURN(filter.tasks.emplace_back(), ParseTask(task));
  }
  const std::optional<LogLevel> level = LevelNamed(level_);
  if (!level.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--level is \"", level_,
                     "\"; use one of trace, debug, info, warning, error"));
  }
  filter.level = *level;
  if (!since_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(filter.since,
                              ParseSince(since_, now, absl::LocalTimeZone()));
  }
  if (journal_ == !log_dir_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(journal_ ? "--log_dir and --journal are both"
                              : "neither --log_dir nor --journal is",
                     " given; give one"));
  }
  return filter;
}

int LogsCommand::Run(Terminal& terminal, std::ostream& err) const {
  const absl::StatusOr<LogFilter> filter = Filter(absl::Now());
  if (!filter.ok()) {
    err << "lockstep logs: " << filter.status().message() << "\n";
    return kUsageExitCode;
  }
  return journal_ ? ShowJournal(*filter, terminal, err)
                  : ShowRun(*filter, terminal, err);
}

int LogsCommand::ShowRun(const LogFilter& filter, Terminal& terminal,
                         std::ostream& err) const {
  // The calls with an error code do not throw where a folder may not be
  // entered.
  std::error_code error;
  const std::filesystem::file_type type =
      std::filesystem::status(log_dir_, error).type();
  if (error && type != std::filesystem::file_type::not_found) {
    err << "lockstep logs: --log_dir " << log_dir_
        << " cannot be read: " << error.message() << "\n";
    return kUsageExitCode;
  }
  RunLogs logs(log_dir_, absl::LocalTimeZone());
  LogStory story;
  std::set<std::string> known;
  while (true) {
    // Asked before the logs are read, so that the last lines are not missed.
    const bool over = !follow_ || !std::filesystem::exists(log_dir_, error) ||
                      LogDirectory::IsLeft(log_dir_) ||
                      std::filesystem::exists(
                          absl::StrCat(log_dir_, "/", kResultFile), error);
    // Taken before the logs are read, so that no log lacks lines of an earlier
    // time.
    const absl::Time now = absl::Now();
    story.Add(Noted(logs.Poll(), known));
    if (over) break;
    Show(story.Take(now - kHoldBack), filter, terminal);
    absl::SleepFor(kPollEvery);
  }
  // The last line of a killed program may have no line feed.
  story.Add(Noted(logs.Rest(), known));
  Show(story.Take(absl::InfiniteFuture()), filter, terminal);
  if (logs.empty()) {
    err << "lockstep logs: " << log_dir_
        << " has no logs of tasks; name the folder that `lockstep run` "
           "printed\n";
    return 1;
  }
  return CheckTasks(filter, known, log_dir_, err);
}

int LogsCommand::ShowJournal(const LogFilter& filter, Terminal& terminal,
                             std::ostream& err) const {
  // Whole seconds, which begin no later; the filter drops the rest.
  const int64_t since = filter.since == absl::InfinitePast()
                            ? 0
                            : absl::ToUnixSeconds(filter.since);
  const std::string command =
      absl::StrCat(kJournal, since, follow_ ? " --follow" : "");
  const std::unique_ptr<FILE, ClosePipe> pipe(popen(command.c_str(), "r"));
  if (pipe == nullptr) {
    err << "lockstep logs: journalctl cannot be started\n";
    return 1;
  }
  // The journal is in order already.
  char* line = nullptr;
  size_t size = 0;
  std::set<std::string> known;
  while (getline(&line, &size, pipe.get()) >= 0) {
    if (std::optional<LogLine> one = FromJournal(line)) {
      Show(Noted({*std::move(one)}, known), filter, terminal);
    }
  }
  free(line);
  if (!known.empty()) {
    return CheckTasks(filter, known,
                      since_.empty()
                          ? "the journal"
                          : absl::StrCat("the journal since ", since_),
                      err);
  }
  err << "lockstep logs: the journal has no lines of units lockstep-*; look on "
         "the machines where they run, as a user who may read the journal\n";
  return 1;
}

}  // namespace lockstep::cli
