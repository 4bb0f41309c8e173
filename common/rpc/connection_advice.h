#ifndef LOCKSTEP_COMMON_RPC_CONNECTION_ADVICE_H_
#define LOCKSTEP_COMMON_RPC_CONNECTION_ADVICE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Finds out why no connection to the server at `address` comes about: its name
// does not resolve, only one of both sides speaks TLS, or the server refuses
// this process's certificate. Returns one sentence with the fix; empty if none
// is the cause. `certificate` says how this process is given one.
//
// Blocks for at most two seconds, without the time of the system's resolver.
std::string ConnectionAdvice(const std::string& address,
                             absl::string_view certificate =
                                 "--tls_dir, or LOCKSTEP_TLS_DIR to a "
                                 "program of your own");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_CONNECTION_ADVICE_H_
