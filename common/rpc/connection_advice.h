#ifndef LOCKSTEP_COMMON_RPC_CONNECTION_ADVICE_H_
#define LOCKSTEP_COMMON_RPC_CONNECTION_ADVICE_H_

#include <string>

namespace lockstep {

// Finds out why no connection to the server at `address` comes about although
// something listens there: only one of both sides speaks TLS, or the server
// refuses this process's certificate. Returns one sentence with the fix; empty
// if neither is the cause.
//
// Blocks for at most two seconds, without the time of the system's resolver.
std::string ConnectionAdvice(const std::string& address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_CONNECTION_ADVICE_H_
