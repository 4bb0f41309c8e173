#include "tests/testing/child_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(5);
constexpr size_t kLastWordsBytes = 2000;

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const Options& options) {
  std::error_code absent;
  const uintmax_t size = std::filesystem::file_size(options.log_path, absent);
  absl::StatusOr<std::unique_ptr<cli::TaskProcess>> process =
      cli::TaskProcess::Start(options);
  if (!process.ok()) return process.status();
  return std::unique_ptr<ChildProcess>(new ChildProcess(
      *std::move(process), options.log_path, absent ? 0 : size));
}

absl::Status ChildProcess::Signal(int signal) {
  if (Poll().has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", pid(), " has ended already"));
  }
  process_->Signal(signal);
  if (signal == SIGSTOP) {
    // The signal stops one thread, and that one, once it is scheduled, the
    // others: until then these go on.
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid()), &info, WSTOPPED);
  }
  return absl::OkStatus();
}

cli::TaskExit ChildProcess::Kill() {
  process_->Signal(SIGKILL);
  return *Wait(absl::InfiniteDuration());
}

absl::StatusOr<cli::TaskExit> ChildProcess::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    if (std::optional<cli::TaskExit> exit = Poll()) return *exit;
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "process ", pid(), " still runs after ",
          absl::FormatDuration(timeout), "; its last words:\n", LastWords()));
    }
    absl::SleepFor(kPollInterval);
  }
}

absl::Status ChildProcess::WaitForLog(absl::string_view text,
                                      absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    // Checks the end first, so that the log then read includes the last lines.
    const bool ended = Poll().has_value();
    if (absl::StrContains(ReadLog(), text)) return absl::OkStatus();
    if (ended) {
      return absl::FailedPreconditionError(
          absl::StrCat("process ", pid(), " ended without saying \"", text,
                       "\"; its last words:\n", LastWords()));
    }
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "process ", pid(), " has not said \"", text, "\" within ",
          absl::FormatDuration(timeout), "; its last words:\n", LastWords()));
    }
    absl::SleepFor(kPollInterval);
  }
}

std::string ChildProcess::ReadLog() const {
  std::ifstream file(log_path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(log_start_));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string ChildProcess::LastWords() const {
  std::string all = ReadLog();
  if (all.size() <= kLastWordsBytes) return all;
  return "..." + all.substr(all.size() - kLastWordsBytes);
}

absl::StatusOr<cli::TaskExit> RunProgram(const ChildProcess::Options& options,
                                         absl::Duration timeout) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child =
      ChildProcess::Start(options);
  if (!child.ok()) return child.status();
  return (*child)->Wait(timeout);
}

}  // namespace lockstep::testing
