#ifndef LOCKSTEP_COMMON_PROCESS_LISTEN_ADDRESS_H_
#define LOCKSTEP_COMMON_PROCESS_LISTEN_ADDRESS_H_

#include <string>

namespace lockstep {

// Returns the address to listen on for a server that peers call as `address`:
// the same, or all addresses of this machine if the host is a name that does
// not resolve. A pod's own name may resolve only when the pod is ready, and the
// pod is not ready before it listens. An invalid `address` is returned
// unchanged.
//
// Blocks as long as the system's resolver does.
std::string ListenAddress(const std::string& address);

// True if only processes of this machine reach a server that listens on
// `address`, "host:port": all addresses of its host are loopback ones. False
// for a name that does not resolve.
//
// Blocks as long as the system's resolver does.
bool IsLoopback(const std::string& address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_LISTEN_ADDRESS_H_
