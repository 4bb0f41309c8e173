#ifndef LOCKSTEP_COMMON_JSON_BOUNDED_JSON_H_
#define LOCKSTEP_COMMON_JSON_BOUNDED_JSON_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace lockstep {

inline constexpr size_t kMaxJsonBytes = size_t{4} << 20;
inline constexpr int kMaxJsonDepth = 64;

// Parses JSON from outside. A byte order mark is skipped. `source` is the name
// of the text in messages, which never carry the text itself.
//
//   kInvalidArgument  empty, above kMaxJsonBytes, nested deeper than
//                     kMaxJsonDepth, a key twice in one object, no UTF-8, or
//                     not JSON (the message says at which line and column)
absl::StatusOr<nlohmann::json> ParseBoundedJson(absl::string_view text,
                                                absl::string_view source);

// The value for a message: an excerpt of a scalar, else "an array" or such.
std::string DescribeJson(const nlohmann::json& value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JSON_BOUNDED_JSON_H_
