#ifndef LOCKSTEP_COMMON_RPC_OWN_SERVER_H_
#define LOCKSTEP_COMMON_RPC_OWN_SERVER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep {

// Calls the health service of this process's own gRPC server at `address`, on a
// new connection each time: an open one would still answer if the server
// accepted no new ones. It uses the own certificate, if there is one. Once that
// has expired no call is accepted, and a server that answers a TLS handshake is
// well: a restart would not help, while a renewal does.
//
//   kUnavailable  no answer within `timeout`, or the answer is not SERVING
absl::Status CheckOwnServer(const std::string& address, absl::Duration timeout);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_OWN_SERVER_H_
