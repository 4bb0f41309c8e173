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

// How long before its end a certificate's expiry is announced.
inline constexpr absl::Duration kExpirySoon = absl::Hours(24 * 14);

// What a certificate says.
struct CertificateFacts {
  NamesInCertificate names;
  std::vector<std::string> addresses;  // IP addresses among its names
  std::string subject;
  std::string issuer;
  std::string serial;  // hexadecimal
  absl::Time not_before;
  absl::Time not_after;
  bool is_authority = false;

  // "lockstep://fashion/worker/1", or the subject if it has no URI name: for
  // messages, made harmless for terminals.
  std::string Owner() const;
};

CertificateFacts FactsOf(X509* certificate);

// Reads all certificates of a PEM text, in its order; other blocks, such as
// keys, are passed over.
//
//   kInvalidArgument  none, or a block that is no certificate; names `source`
absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(absl::string_view pem,
                                                      absl::string_view source);

// "expires in 12 days", "expired 3 min ago", "is not valid before ..., in 5
// min"; empty if it is valid for longer than kExpirySoon.
std::string ValidityTrouble(const CertificateFacts& facts, absl::Time now);

// A duration in its largest unit: "12 days", "3 h", "5 min", "40 s".
std::string RoughDuration(absl::Duration duration);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_FACTS_H_
