#ifndef LOCKSTEP_DEPLOY_CLI_COMMAND_USER_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_COMMAND_USER_COMMAND_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

// A program of the user and its arguments, which takes the part of the built-in
// worker in a task. Empty: the built-in one.
using UserCommand = std::vector<std::string>;

// Names of environment variables of such a program, besides TF_CONFIG. The
// directory of the task's certificates, as --tls_dir of other programs.
inline constexpr char kTlsDirVariable[] = "LOCKSTEP_TLS_DIR";

// Cuts the words after the first "--", which must not be parsed as flags, off a
// command line. Returns them; `argc` becomes the number of the words before.
// Without a "--", or if nothing follows it, it returns none and changes
// nothing.
UserCommand CutCommand(int& argc, const char* const* argv);

// Returns the command with the path of its program, which is looked for in
// `search_path`, the value of PATH, unless it has a '/'.
//
//   kInvalidArgument  an empty command, or no such program; names it
absl::StatusOr<UserCommand> ResolveCommand(const UserCommand& command,
                                           absl::string_view search_path);

// Refuses a setting in the place of a program.
//
//   kInvalidArgument  the command begins with key=value; tells of --set
absl::Status CheckIsNoSetting(const UserCommand& command);

// Looks for the program that `text`, a command for the shell, begins with. A
// beginning that only the shell can read is taken for good.
//
//   kInvalidArgument  `text` is empty, or there is no such program; names it
absl::Status CheckShellCommand(absl::string_view text,
                               absl::string_view search_path);

// Returns the command that has the shell run `text`.
UserCommand ShellCommand(const std::string& text);

// Returns the value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

// Returns the variables to add to those of a user's program: `threads` for
// libraries that compute with OpenMP, output of Python without a buffer, unless
// `environment` has them, and `tls_dir` unless that is empty.
std::map<std::string, std::string> CommandEnvironment(
    int threads, const std::string& tls_dir, const Environment& environment);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COMMAND_USER_COMMAND_H_
