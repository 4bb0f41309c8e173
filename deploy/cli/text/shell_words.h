#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_SHELL_WORDS_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_SHELL_WORDS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// `text` as one word of a shell's command line.
std::string ShellWord(absl::string_view text);

// How a user calls the program at `path`, in any folder: by its name where the
// directories of `search_path`, a value of PATH, find it first; else by `path`.
// As one word of a command line.
std::string CallOf(const std::string& path, absl::string_view search_path);

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_SHELL_WORDS_H_
