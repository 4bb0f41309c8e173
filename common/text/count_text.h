#ifndef LOCKSTEP_COMMON_TEXT_COUNT_TEXT_H_
#define LOCKSTEP_COMMON_TEXT_COUNT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Returns "1 step", "2 steps", for messages. The plural of `noun` must end in
// s.
inline std::string CountText(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TEXT_COUNT_TEXT_H_
