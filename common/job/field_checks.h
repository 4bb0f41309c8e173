#ifndef LOCKSTEP_COMMON_JOB_FIELD_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_FIELD_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Checks of single fields of a job. Each returns OK or kInvalidArgument, which
// names the field, its value and the allowed values: "seed is 0, but must be 1
// or more".
namespace lockstep {

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Returns the error for a field whose value is not `allowed`, a text such as "1
// or more".
absl::Status Wrong(absl::string_view field, const absl::AlphaNum& value,
                   absl::string_view allowed);

// Checks that `value` is in [min, max].
absl::Status CheckInt(absl::string_view field, int64_t value, int64_t min,
                      int64_t max = kNoLimit);

// Checks that `value` is finite and `in_range`, the condition that `allowed`
// describes.
absl::Status CheckReal(absl::string_view field, double value, bool in_range,
                       absl::string_view allowed);
// Check that `value` is finite and above 0; finite and at least 0; in [0, 1).
absl::Status CheckPositive(absl::string_view field, double value);
absl::Status CheckAtLeastZero(absl::string_view field, double value);
absl::Status CheckBelowOne(absl::string_view field, double value);

// Returns "values[2]", an element of a list, for messages.
std::string Element(absl::string_view field, size_t index);

// Prefixes the field named in `status` with `element`, if it is an error.
absl::Status Within(absl::string_view element, const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_FIELD_CHECKS_H_
