#include "deploy/cli/command/user_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::cli {
namespace {

bool IsProgram(const std::string& path) {
  std::error_code error;
  // access() alone would accept a directory, which may be entered.
  return std::filesystem::is_regular_file(path, error) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

UserCommand CutCommand(int& argc, const char* const* argv) {
  constexpr absl::string_view kMark = "--";
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != kMark) continue;
    // Left for the parser, which refuses it.
    if (i + 1 == argc) return {};
    UserCommand command(argv + i + 1, argv + argc);
    argc = i;
    return command;
  }
  return {};
}

absl::StatusOr<UserCommand> ResolveCommand(const UserCommand& command,
                                           absl::string_view search_path) {
  if (command.empty() || command.front().empty()) {
    return absl::InvalidArgumentError(
        "the command after -- is empty; write -- python3 train.py");
  }
  UserCommand resolved = command;
  const std::string& name = command.front();
  if (name.find('/') != std::string::npos) {
    if (IsProgram(name)) return resolved;
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     ": is no program that can be run; give the program that "
                     "reads it, as in -- python3 train.py, or make it "
                     "executable"));
  }
  for (const absl::string_view directory : absl::StrSplit(search_path, ':')) {
    // An empty entry of PATH is the working directory, as in a shell.
    resolved.front() =
        absl::StrCat(directory.empty() ? "." : directory, "/", name);
    if (IsProgram(resolved.front())) return resolved;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name,
      ": there is no such program in PATH; install it, or give its path; give "
      "a script with the program that reads it, as in -- python3 train.py"));
}

absl::Status CheckIsNoSetting(const UserCommand& command) {
  if (command.empty()) return absl::OkStatus();
  const std::string& name = command.front();
  // An '=' behind a '/' is one of a path.
  const size_t sign = name.find_first_of("=/");
  if (sign == std::string::npos || name[sign] == '/') return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is no program; if it is a setting of the job, write --set ",
      name));
}

absl::Status CheckShellCommand(absl::string_view text,
                               absl::string_view search_path) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "the command is empty; write 'python3 eval.py'");
  }
  const absl::string_view first = words.front();
  // Assignments, quotes, variables and other marks are for the shell to read.
  const bool plain =
      std::all_of(first.begin(), first.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || absl::StrContains("_-+./", c);
      });
  // The shell does these by itself.
  constexpr absl::string_view kOfTheShell[] = {
      ".",  "case", "cd",   "command", "eval",   "exec",  "export", "for",
      "if", "set",  "time", "trap",    "ulimit", "umask", "until",  "while"};
  if (!plain || std::find(std::begin(kOfTheShell), std::end(kOfTheShell),
                          first) != std::end(kOfTheShell)) {
    return absl::OkStatus();
  }
  return ResolveCommand({std::string(first)}, search_path).status();
}

UserCommand ShellCommand(const std::string& text) {
  return {"/bin/sh", "-c", text};
}

std::map<std::string, std::string> CommandEnvironment(
    int threads, const std::string& tls_dir, const Environment& environment) {
  std::map<std::string, std::string> added;
  const auto add = [&](const char* name, const std::string& value) {
    if (environment(name) == nullptr) added[name] = value;
  };
  // By itself each program would use all cores, also beside other workers.
  add("OMP_NUM_THREADS", absl::StrCat(threads));
  // Into a file Python writes whole blocks, and a program that is killed loses
  // the last one.
  add("PYTHONUNBUFFERED", "1");
  if (!tls_dir.empty()) added[kTlsDirVariable] = tls_dir;
  return added;
}

}  // namespace lockstep::cli
