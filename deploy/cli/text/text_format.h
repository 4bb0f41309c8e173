#ifndef LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_
#define LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "common/text/figure_text.h"

namespace lockstep::cli {

// Replaces all bytes that are not printable ASCII by '?', so that one byte is
// one column and outside text cannot control the terminal.
std::string Printable(absl::string_view text);

// Returns the first `columns` bytes; the last of them is "~" if anything was
// cut off.
std::string Clip(absl::string_view text, size_t columns);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TEXT_TEXT_FORMAT_H_
