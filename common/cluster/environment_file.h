#ifndef LOCKSTEP_COMMON_CLUSTER_ENVIRONMENT_FILE_H_
#define LOCKSTEP_COMMON_CLUSTER_ENVIRONMENT_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Variables in the order of the file, name and value; the last one of a name
// counts.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Reads lines NAME=VALUE in the format of systemd's EnvironmentFile=: empty
// lines and lines that start with '#' or ';' are comments; a value may stand in
// single or double quotes, also over several lines; outside of single quotes a
// backslash escapes the next character and joins lines. Files for `kubectl
// create configmap --from-env-file` are read in the same way, unless a value
// has a backslash or begins with a quote.
//
//   kInvalidArgument  a name with other characters than letters, digits and
//                     '_', a line without '=', or a quote that is not closed;
//                     names `source` and the line, and never the value
absl::StatusOr<Environment> ParseEnvironmentFile(absl::string_view text,
                                                 absl::string_view source);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_ENVIRONMENT_FILE_H_
