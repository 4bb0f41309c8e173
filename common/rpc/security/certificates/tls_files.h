#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_TLS_FILES_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_TLS_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/task_id.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/trusted_authorities.h"

namespace lockstep {

// The files of --tls_dir, in PEM format. cert-manager and `kubectl create
// secret tls` use these names.
struct TlsFiles {
  static constexpr char kCertificate[] = "tls.crt";
  static constexpr char kKey[] = "tls.key";
  static constexpr char kAuthorities[] = "ca.crt";
  static constexpr char kRevoked[] = "crl.pem";

  std::string certificate;  // its own first, then intermediate authorities
  std::string key;
  std::string authorities;
  std::string revoked;  // empty: there is no such file

  bool operator==(const TlsFiles&) const = default;
};

// Files that have been checked against each other.
struct CheckedTlsFiles {
  TlsFiles files;
  CertificateFacts own;
  std::string job;  // the job in the own certificate's names
  std::shared_ptr<const TrustedAuthorities> authorities;
};

// Replaces {role} and {index} in a --tls_dir by those of a task.
std::string TlsDirOf(const std::string& directory, const TaskId& task);

// Reads the files of a directory: those of one version, where a renewal puts
// new ones in the place of all of them in one step, by a link.
//
//   kNotFound          the directory or one of its files is missing
//   kPermissionDenied  the key file belongs to another user than this one or
//                      root, or has rights for others than its owner and, to
//                      read, its group; says the fix
//   kInvalidArgument   a file is empty or larger than 1 MiB
absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& directory);

// Checks that the key fits the certificate, and that the certificate is valid
// at `now`, signed by one of the authorities, and has names of exactly one job.
// `job` is the job of the foreign names of --identity_map; empty: only
// Lockstep's own names count.
//
//   kInvalidArgument  names the file and the mistake
//   kUnauthenticated  as TrustedAuthorities::Check()
absl::StatusOr<CheckedTlsFiles> CheckTlsFiles(TlsFiles files,
                                              const std::string& job,
                                              absl::Time now);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_TLS_FILES_H_
