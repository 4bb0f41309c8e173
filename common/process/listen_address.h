#ifndef LOCKSTEP_COMMON_PROCESS_LISTEN_ADDRESS_H_
#define LOCKSTEP_COMMON_PROCESS_LISTEN_ADDRESS_H_

#include <string>

namespace lockstep {

// Where a server whose peers call `address` listens: there, or on all of this
// machine's addresses when the host is a name that does not resolve. A pod's
// own name may resolve only once the pod is ready, which it is not before it
// listens. An `address` that makes no sense is returned as it is.
//
// It takes as long as the system's resolver does.
std::string ListenAddress(const std::string& address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_LISTEN_ADDRESS_H_
