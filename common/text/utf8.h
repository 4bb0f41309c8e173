#ifndef LOCKSTEP_COMMON_TEXT_UTF8_H_
#define LOCKSTEP_COMMON_TEXT_UTF8_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// True if `text` is well-formed UTF-8: no overlong form, no surrogate, nothing
// above U+10FFFF. Protobuf refuses other strings in messages.
bool IsUtf8(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_UTF8_H_
