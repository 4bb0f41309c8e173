#ifndef LOCKSTEP_COMMON_FLAGS_NEAREST_MATCH_H_
#define LOCKSTEP_COMMON_FLAGS_NEAREST_MATCH_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace lockstep {

// Returns the candidate that `name` was most likely meant to be, or nothing
// when no candidate is near. Case is ignored, and '-' equals '_'.
//
// Near means at most one mistake per three characters of the candidate, and
// always room for one; a mistake is a letter added, left out, replaced, or two
// neighbours swapped. Of several equally near, the first in `candidates` wins.
std::optional<std::string> NearestMatch(
    std::string_view name, absl::Span<const std::string> candidates);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_NEAREST_MATCH_H_
