#ifndef LOCKSTEP_COMMON_CLUSTER_ENVIRONMENT_FILE_H_
#define LOCKSTEP_COMMON_CLUSTER_ENVIRONMENT_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Variables as they were set, name and value; of two with one name the later
// one counts.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Reads lines NAME=VALUE as systemd reads an EnvironmentFile=: empty lines and
// those that start with '#' or ';' are comments; a value may stand in single
// or double quotes, also over several lines; outside of single quotes a
// backslash takes the next character as it is, and joins lines. What `kubectl
// create configmap --from-env-file` takes reads the same, unless its values
// have backslashes or begin with a quote.
//
//   kInvalidArgument  a name with other characters than letters, digits and
//                     '_', a line without '=', or a quote that is not closed;
//                     names `source` and the line, and never the value
absl::StatusOr<Environment> ParseEnvironmentFile(absl::string_view text,
                                                 absl::string_view source);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_ENVIRONMENT_FILE_H_
