#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_FACTS_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_FACTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/security/caller.h"
#include "common/rpc/security/certificates/openssl_types.h"

namespace lockstep {

// The time before its end from which a certificate's expiry is announced.
inline constexpr absl::Duration kExpirySoon = absl::Hours(24 * 14);

// The contents of a certificate.
struct CertificateFacts {
  NamesInCertificate names;
  std::vector<std::string> addresses;  // IP addresses among its names
  std::string subject;
  std::string issuer;
  std::string serial;  // hexadecimal
  absl::Time not_before;
  absl::Time not_after;
  bool is_authority = false;

  // Returns the first URI name, such as "lockstep://fashion/worker/1", or the
  // subject if there is none, for messages: harmless for terminals.
  std::string Owner() const;
};

CertificateFacts FactsOf(X509* certificate);

// Reads all certificates of a PEM text, in order; skips other blocks, such as
// keys.
//
//   kInvalidArgument  none, or a block that is no certificate; names `source`
absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(absl::string_view pem,
                                                      absl::string_view source);

// Returns "expires in 12 days", "expired 3 min ago" or "is not valid before
// ..., in 5 min"; empty if the certificate is valid for longer than
// kExpirySoon. The words stay the same for a minute at least, because problems
// are told apart by them; see TroubleBook.
std::string ValidityTrouble(const CertificateFacts& facts, absl::Time now);

// The fix of a certificate that has expired, or expires soon.
inline constexpr char kRenew[] = "renew it, as with `lockstep certs renew`";

// Returns a duration in its largest unit: "12 days", "3 h", "5 min", "40 s".
std::string RoughDuration(absl::Duration duration);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_FACTS_H_
