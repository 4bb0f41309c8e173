#ifndef LOCKSTEP_COMMON_TEXT_PLAIN_TEXT_H_
#define LOCKSTEP_COMMON_TEXT_PLAIN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Largest accepted size of a reason or a name from a peer; the decoder cuts off
// the rest.
inline constexpr size_t kMaxPeerText = 1 << 10;

// Returns at most `most` bytes of the text, cut between UTF-8 characters, and
// "..." if bytes were left out.
std::string CutText(absl::string_view text, size_t most = kMaxPeerText);

// True if the character, in UTF-8, steers the terminal, editor or browser that
// shows it: a control character, an end of a line or paragraph, or a mark for
// the direction of writing, with which text can pose as other text.
bool Steers(absl::string_view character);

// Returns the text in one line: characters for which Steers() is true are
// written as "\n", "\t" or "\x1b". Cut after `most` bytes.
std::string OneLine(absl::string_view text, size_t most);

// True if OneLine() leaves the text unchanged.
bool IsOneLine(absl::string_view text, size_t most);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_PLAIN_TEXT_H_
