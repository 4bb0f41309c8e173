#ifndef LOCKSTEP_COMMON_PROCESS_PROCESS_LIMITS_H_
#define LOCKSTEP_COMMON_PROCESS_PROCESS_LIMITS_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// Allows this process as many open files as the system lets it have.
void RaiseFileLimit();

// Makes `count` threads at once and ends them again: gRPC and C++ end the
// process without a word where one cannot be made.
//
//   kResourceExhausted  they cannot be made; names the limits in question
absl::Status CheckThreads(int count);

// What limits the threads of this process, with the values of all limits:
// "processes of this user (ulimit -u) ...".
std::string ThreadLimits();

// From here on, an exception that nobody catches because a thread could not be
// made ends the process with exit code `code` and a message that names the
// limits, in place of SIGABRT.
void ExplainMissingThreads(int code);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_PROCESS_LIMITS_H_
