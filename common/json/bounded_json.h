#ifndef LOCKSTEP_COMMON_JSON_BOUNDED_JSON_H_
#define LOCKSTEP_COMMON_JSON_BOUNDED_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace lockstep {

inline constexpr size_t kMaxJsonBytes = size_t{4} << 20;

struct JsonLimits {
  size_t max_bytes = kMaxJsonBytes;
  size_t max_depth = 64;  // objects and arrays open at once
};

// Parses JSON from outside, without exceptions. A byte order mark is skipped. A
// key that appears twice in one object is refused, not overwritten: two readers
// of such a text could take different values. `source` is the name of the text
// in messages, which never carry the text itself.
//
//   kInvalidArgument  empty, beyond a limit, a key twice in one object, no
//                     UTF-8, or not JSON (the message says at which line and
//                     column)
absl::StatusOr<nlohmann::json> ParseBoundedJson(absl::string_view text,
                                                absl::string_view source,
                                                const JsonLimits& limits = {});

// Describes `value` in a message: an excerpt of a scalar, else "an array" and
// the like.
std::string DescribeJson(const nlohmann::json& value);

// Returns `value` as JSON for a message, cut after 64 bytes.
std::string ShowJson(const nlohmann::json& value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JSON_BOUNDED_JSON_H_
