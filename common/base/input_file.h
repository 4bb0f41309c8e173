#ifndef LOCKSTEP_COMMON_BASE_INPUT_FILE_H_
#define LOCKSTEP_COMMON_BASE_INPUT_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

// A pipe without a writer, or with one that does not close it, would otherwise
// hold up a program before it listens to signals.
constexpr absl::Duration kInputPatience = absl::Seconds(10);

// Returns the contents of a file that a user has named, which may be a pipe, as
// of `<(command)` in a shell; no more than the first `limit` bytes. Errors,
// whose messages say why but not which file:
//   kNotFound   the file cannot be opened or read, or is a pipe that has not
//               ended within `patience`, an hour at most
absl::StatusOr<std::string> ReadInputFile(
    const std::string& path, size_t limit,
    absl::Duration patience = kInputPatience);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_INPUT_FILE_H_
