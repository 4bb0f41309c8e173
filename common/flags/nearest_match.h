#ifndef LOCKSTEP_COMMON_FLAGS_NEAREST_MATCH_H_
#define LOCKSTEP_COMMON_FLAGS_NEAREST_MATCH_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace lockstep {

// Returns the candidate that `name` most likely stands for, or nothing if no
// candidate is near. Case is ignored, and '-' equals '_'.
//
// A candidate is near if it differs by at most one mistake per three of its
// characters; one mistake is always allowed. A mistake is a letter added, left
// out or replaced, or two neighbours swapped. Among equally near candidates,
// the first in `candidates` wins.
std::optional<std::string> NearestMatch(
    std::string_view name, absl::Span<const std::string> candidates);

// Returns "; did you mean X?" for the nearest candidate X. Empty if none is
// near, or if `name`, which may come from a peer, is long: the search takes
// quadratic time.
std::string DidYouMean(std::string_view name,
                       absl::Span<const std::string> candidates);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_FLAGS_NEAREST_MATCH_H_
