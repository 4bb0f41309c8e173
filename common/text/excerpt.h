#ifndef LOCKSTEP_COMMON_TEXT_EXCERPT_H_
#define LOCKSTEP_COMMON_TEXT_EXCERPT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns `value` in double quotes for an error message: plain ASCII, and cut
// after `most` bytes, since what came from outside may be huge or secret.
std::string Excerpt(absl::string_view value, size_t most = 60);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_EXCERPT_H_
