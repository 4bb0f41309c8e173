#ifndef LOCKSTEP_COMMON_PROCESS_PROCESS_LIMITS_H_
#define LOCKSTEP_COMMON_PROCESS_PROCESS_LIMITS_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// Raises this process's limit of open files to the system's maximum.
void RaiseFileLimit();

// Creates `count` threads at once and ends them again. gRPC and C++ end the
// process without a message if a thread cannot be created; this check finds
// that early.
//
//   kResourceExhausted  they cannot be created; names the limits in question
absl::Status CheckThreads(int count);

// Opens `count` descriptors at once and closes them again. Without descriptors
// gRPC makes no connections or ends the process; this check finds that early.
//
//   kResourceExhausted  they cannot be opened; names the limit and its value
absl::Status CheckFiles(int count);

// Returns the limits on this process's threads with their values: "processes of
// this user (ulimit -u) ...".
std::string ThreadLimits();

// From now on, an uncaught exception because a thread could not be created or
// there is no memory ends the process with exit code `code` and a message that
// names the limits, instead of SIGABRT.
void ExplainMissingResources(int code);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_PROCESS_LIMITS_H_
