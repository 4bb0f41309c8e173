#ifndef LOCKSTEP_COMMON_TEXT_PROGRESS_TEXT_H_
#define LOCKSTEP_COMMON_TEXT_PROGRESS_TEXT_H_

#include <cstdint>
#include <string>

namespace lockstep {

// Returns how far work is, to follow its name: ", 40 %, 12 s to go". The time
// is left out in the first second and before one percent is done, and all of it
// where `total` or `done` is not known (below 1 and below 0). `seconds` is the
// time since the work began.
std::string ProgressText(int64_t done, int64_t total, double seconds);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_PROGRESS_TEXT_H_
