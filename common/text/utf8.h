#ifndef LOCKSTEP_COMMON_TEXT_UTF8_H_
#define LOCKSTEP_COMMON_TEXT_UTF8_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// Whether `text` is well-formed UTF-8: no overlong form, no surrogate, nothing
// above U+10FFFF. Messages refuse strings that are not.
bool IsUtf8(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_UTF8_H_
