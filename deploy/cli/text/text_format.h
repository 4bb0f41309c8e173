#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "common/text/figure_text.h"

namespace lockstep::cli {

// Replaces the bytes of all that is no printable character of UTF-8 by '?', so
// that outside text cannot control the terminal.
std::string Printable(absl::string_view text);

// Returns the number of characters of a printable text: its columns on a
// terminal, but for characters of East Asia that are two columns wide.
size_t Columns(absl::string_view text);

// Returns the first `columns` characters of a printable text; the last of them
// is "~" if anything was cut off.
std::string Clip(absl::string_view text, size_t columns);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_
