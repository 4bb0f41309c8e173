#ifndef LOCKSTEP_COMMON_TEXT_PLAIN_TEXT_H_
#define LOCKSTEP_COMMON_TEXT_PLAIN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Of a reason or a name that a peer sends: what comes after is cut off when it
// is decoded.
inline constexpr size_t kMaxPeerText = 1 << 10;

// At most `most` bytes of the text, which do not end within a character of
// UTF-8, and "..." where some are left out.
std::string CutText(absl::string_view text, size_t most = kMaxPeerText);

// The text in one line: what steers a terminal or begins a new line is written
// as "\n", "\t" or "\x1b". Cut after `most` bytes.
std::string OneLine(absl::string_view text, size_t most);

// Whether OneLine() changes the text.
bool IsOneLine(absl::string_view text, size_t most);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_PLAIN_TEXT_H_
