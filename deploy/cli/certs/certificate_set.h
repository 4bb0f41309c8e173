#ifndef LOCKSTEP_DEPLOY_CLI_CERTS_CERTIFICATE_SET_H_
#define LOCKSTEP_DEPLOY_CLI_CERTS_CERTIFICATE_SET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/task_id.h"
#include "common/rpc/security/certificates/certificate_maker.h"

namespace lockstep::cli {

// The certificates of one job.
struct CertificateSet {
  // The authority's key, a file in `directory`.
  static constexpr char kAuthorityKey[] = "ca.key";

  struct Task {
    TaskId id;
    // "host:port"; the host is among its names. May be empty.
    std::string address;
  };

  std::string job;
  std::vector<Task> tasks;
  TaskId chief;              // the task that hosts the chief
  std::string directory;     // of the set
  std::string only;          // a member, "worker-1"; empty: all
  Validity validity;         // of the pairs
  Validity authority_valid;  // of the authority, if it has to be made
  absl::Time made;           // for the name of a new authority
};

// The members of a set, "ps-0" and so on, and "operator-read" and
// "operator-steer": each is a directory that can be a --tls_dir.
// Without a ps, each task that computes is known as a worker: a chief task is
// "worker-0", and the workers follow it.
std::vector<std::string> MembersOf(const CertificateSet& set);

// Checks that no other user may use the authority's key in `directory`, if it
// is there.
//
//   kPermissionDenied  another one may
absl::Status CheckAuthorityKey(const std::string& directory);

// Makes the authority of a set, ca.crt and ca.key in its directory, or uses the
// one that is there, and a new key with its certificate for each member. A
// member's directory is a link, which is switched when all of its new files are
// there: a process that reads them never finds half of them.
//
// Returns the members that were made. Calls for one directory must not overlap.
//
//   kInvalidArgument     the job's name fits no certificate; there is no member
//                        `only`; a present certificate is of another job
//   kNotFound            ca.key is not there, but ca.crt is: it was taken away,
//                        and must be brought back for this
//   kFailedPrecondition  ca.key is there, but ca.crt is not; or the authority
//                        has expired; or a member's directory is no link
//   kPermissionDenied    as CheckAuthorityKey()
//   others               of the system
absl::StatusOr<std::vector<std::string>> WriteCertificateSet(
    const CertificateSet& set);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CERTS_CERTIFICATE_SET_H_
