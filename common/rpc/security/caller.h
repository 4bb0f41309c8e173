#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CALLER_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CALLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/cluster/task_id.h"
#include "common/rpc/security/certificate_name.h"
#include "common/rpc/security/identity_map.h"
#include "common/rpc/security/role_set.h"

namespace lockstep {

// The names in a certificate, unchanged.
struct NamesInCertificate {
  std::vector<std::string> uris;
  std::vector<std::string> dns;
};

// Caller is the process at the other end of a call: the owner of a certificate,
// or any process if the connection has no certificates.
//
// Threads: a value.
class Caller {
 public:
  // A process on a connection without certificates: it may call everything, in
  // any task's name. Such connections are loopback, Unix sockets, or
  // --insecure.
  Caller() = default;

  // The owner of a certificate. Names that are neither Lockstep's nor in `map`
  // are ignored. The caller has no role if it has no name of `job`, or if it
  // has one of another job.
  Caller(const NamesInCertificate& names, absl::string_view job,
         const IdentityMap& map);

  // False on a connection without certificates.
  bool is_checked() const { return checked_; }

  // Empty if the certificate has no name of the job.
  RoleSet roles() const { return roles_; }

  // Checks that the sender of a message may speak as `task`.
  //
  //   kPermissionDenied  the certificate has no name of that task
  absl::Status CheckSpeaksFor(const TaskId& task) const;

  // True if the caller has one of `roles`, or is not checked.
  bool HasOneOf(RoleSet roles) const {
    return !checked_ || (roles_ & roles) != 0;
  }

  // The number of the stream on which the call arrived, if it is one of many on
  // it; 0: it is an RPC of its own. Later streams have larger numbers.
  uint64_t stream() const { return stream_; }
  void set_stream(uint64_t stream) { stream_ = stream; }

  // "worker 1 of job fashion", "a process without a role in job fashion: ...";
  // for messages.
  const std::string& ToString() const { return text_; }

 private:
  bool checked_ = false;
  uint64_t stream_ = 0;
  std::vector<CertificateName> names_;
  RoleSet roles_ = 0;
  std::string text_ = "a caller without certificate";
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CALLER_H_
