#include "common/rpc/connection_advice.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/cluster/host_port.h"
#include "common/rpc/security/certificates/peer_probe.h"
#include "common/rpc/security/transport/transport_security.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(1);

}  // namespace

std::string ConnectionAdvice(const std::string& address,
                             absl::string_view certificate) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return "";
  const std::shared_ptr<TransportSecurity> own = OwnSecurity();
  const TlsFiles files = own == nullptr ? TlsFiles() : own->files();
  const absl::StatusOr<PeerShown> shown = ProbePeer(
      parsed->host, parsed->port, own == nullptr ? nullptr : &files, kTimeout);
  if (absl::IsNotFound(shown.status())) {
    return absl::StrCat(shown.status().message(), "; check its spelling");
  }
  if (own == nullptr) {
    // No TLS there either: the cause is another one.
    if (!shown.ok()) return "";
    return absl::StrCat("the process at ", address, " (", shown->facts.Owner(),
                        ") speaks TLS, and this one has no certificate: give ",
                        certificate);
  }
  if (absl::IsFailedPrecondition(shown.status())) {
    return absl::StrCat("the process at ", address,
                        " speaks no TLS, and this one does: start it with "
                        "--tls_dir");
  }
  // The handshake succeeded: certificates are not the cause.
  if (!shown.ok() || shown->refusal.empty()) return "";
  return absl::StrCat("the process at ", address, " (", shown->facts.Owner(),
                      ") refuses the certificate of ", own->own().Owner(),
                      "; its log says why");
}

}  // namespace lockstep
