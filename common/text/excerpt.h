#ifndef LOCKSTEP_COMMON_TEXT_EXCERPT_H_
#define LOCKSTEP_COMMON_TEXT_EXCERPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns `value` in double quotes for an error message: plain ASCII, and cut
// after 60 characters, since what came from outside may be huge or secret.
std::string Excerpt(absl::string_view value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_EXCERPT_H_
