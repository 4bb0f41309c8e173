#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_REQUIRE_TLS13_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_REQUIRE_TLS13_H_

#include "absl/status/status.h"

namespace lockstep {

// Makes TLS 1.3 the only version for connections of this process from now on.
// gRPC 1.51 has no setting for that; this replaces the section of the system's
// openssl.cnf with the defaults of connections. Must be called before a server
// or a channel is made; later calls have no effect.
//
//   kInternal  the message is OpenSSL's
absl::Status RequireTls13();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_REQUIRE_TLS13_H_
