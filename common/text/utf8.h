#ifndef LOCKSTEP_COMMON_TEXT_UTF8_H_
#define LOCKSTEP_COMMON_TEXT_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// True if `text` is well-formed UTF-8: no overlong form, no surrogate, nothing
// above U+10FFFF. Protobuf refuses other strings in messages.
bool IsUtf8(absl::string_view text);

// Returns the text if IsUtf8(), else the text with "?" in place of each byte
// that is not ASCII. For fields of messages: text for people may have bytes of
// a flag, a file or the system, and a receiver refuses the whole message.
std::string ToUtf8(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_UTF8_H_
