#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_TRUSTED_AUTHORITIES_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_TRUSTED_AUTHORITIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/openssl_types.h"

namespace lockstep {

// TrustedAuthorities checks certificates of peers against the authorities of a
// CA bundle, and reports the mistake in words. OpenSSL verifies; gRPC's own
// check is not used because it does not report a reason.
//
// Threads: immutable.
class TrustedAuthorities {
 public:
  enum class Side { kServer, kClient };  // of the peer

  // `bundle` has the certificates of one or more authorities; `revoked` has
  // lists of revoked certificates, or is empty. Both in PEM format.
  //
  //   kInvalidArgument  the bundle has no certificate, or one that is no
  //                     authority; a list is damaged or not signed by an
  //                     authority of the bundle
  static absl::StatusOr<std::shared_ptr<const TrustedAuthorities>> Make(
      absl::string_view bundle, absl::string_view revoked);

  // Checks the first certificate of `chain` at `now`. The others may be
  // intermediate authorities.
  //
  //   kInvalidArgument   no certificate
  //   kUnauthenticated   signed by another authority, expired, not yet valid,
  //                      revoked, or not for this use; names its owner
  absl::Status Check(absl::string_view chain, Side side, absl::Time now) const;

  // The subjects of the authorities, for messages.
  const std::string& names() const { return names_; }
  // The earliest end of an authority's validity.
  absl::Time not_after() const { return not_after_; }

 private:
  StorePtr store_;
  std::string names_;
  absl::Time not_after_ = absl::InfiniteFuture();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_TRUSTED_AUTHORITIES_H_
