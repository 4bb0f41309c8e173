#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_PEER_PROBE_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_PEER_PROBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/tls_files.h"

namespace lockstep {

// The contents of a TLS handshake with a server.
struct PeerShown {
  std::string chain;  // PEM; its own certificate first
  CertificateFacts facts;
  // Empty if the server accepted this process's certificate; else the reason in
  // OpenSSL's words.
  std::string refusal;
};

// Makes a TLS 1.3 handshake with the server at `host` and `port`, with this
// process's certificate if `own` is not null, and closes the connection. It
// checks nothing of the server's certificate; the caller must. Blocks for at
// most `timeout` in each of connecting, writing and reading, besides the time
// of the system's resolver.
//
//   kNotFound            the name `host` does not resolve
//   kUnavailable         no connection, or one that the server ended before it
//                        spoke TLS or anything else
//   kFailedPrecondition  the server speaks no TLS 1.3
//   kDeadlineExceeded    no answer
//   kResourceExhausted   there is no memory for a TLS connection
absl::StatusOr<PeerShown> ProbePeer(const std::string& host, int port,
                                    const TlsFiles* own,
                                    absl::Duration timeout);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_PEER_PROBE_H_
