#ifndef LOCKSTEP_COMMON_JSON_STRICT_JSON_H_
#define LOCKSTEP_COMMON_JSON_STRICT_JSON_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace lockstep {

struct JsonLimits {
  size_t max_bytes = 0;
  int max_depth = 0;  // objects and arrays open at once
};

// Parses one JSON text from an untrusted file, without exceptions. A key that
// appears twice in one object is refused, not overwritten: two readers of such
// a file could disagree about what it says.
//
//   kInvalidArgument  beyond a limit, not JSON, not UTF-8, or a repeated key;
//                     says where
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text,
                                               const JsonLimits& limits);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JSON_STRICT_JSON_H_
