#ifndef LOCKSTEP_COMMON_TEXT_DURATION_TEXT_H_
#define LOCKSTEP_COMMON_TEXT_DURATION_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace lockstep {

// Returns a text such as "1m2.5s", for messages: whole multiples of `unit`, the
// rest is cut off. If no multiple is left, the text is "0s".
std::string DurationText(absl::Duration duration,
                         absl::Duration unit = absl::Milliseconds(100));

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_DURATION_TEXT_H_
