#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_MAKER_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_MAKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

// A certificate and its private key, in PEM format.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

// The time in which a certificate is valid.
struct Validity {
  absl::Time from;
  absl::Time until;
};

// The contents of a new certificate.
struct CertificateRequest {
  std::string common_name;         // cut to the 64 bytes that X.509 allows
  std::vector<std::string> uris;   // names, as CertificateName::ToUri()
  std::vector<std::string> hosts;  // IP addresses and DNS names
  bool for_servers = true;
  bool for_clients = true;
};

// Makes a certificate authority with a new P-256 key. It may sign certificates
// of processes, but no further authorities.
//
//   kInternal  the message is OpenSSL's
absl::StatusOr<CertifiedKey> MakeAuthority(absl::string_view common_name,
                                           const Validity& validity);

// Makes a new P-256 key with a certificate that `authority` signs. It ends with
// its authority if that ends before `validity` does.
//
//   kInvalidArgument  `authority` is no certificate with its key
//   kInternal         the message is OpenSSL's
absl::StatusOr<CertifiedKey> MakeCertificate(const CertifiedKey& authority,
                                             const CertificateRequest& request,
                                             const Validity& validity);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_CERTIFICATE_MAKER_H_
