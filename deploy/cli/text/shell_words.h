#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_SHELL_WORDS_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_SHELL_WORDS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::cli {

// Returns `text` as one word of a shell's command line.
std::string ShellWord(absl::string_view text);

// Returns the command for the program at `path` that works in any folder: its
// name if it is the first of that name in the directories of `search_path`, a
// value of PATH; else `path`. It is one word of a command line.
std::string CallOf(const std::string& path, absl::string_view search_path);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_SHELL_WORDS_H_
