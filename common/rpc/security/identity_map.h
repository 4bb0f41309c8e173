#ifndef LOCKSTEP_COMMON_RPC_SECURITY_IDENTITY_MAP_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_IDENTITY_MAP_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/security/certificate_name.h"

namespace lockstep {

// IdentityMap gives roles of one job to the owners of certificates whose names
// are not Lockstep's: SPIFFE ids of service accounts, or DNS names of a mesh.
// Keys are URI names, with their scheme, or DNS names.
using IdentityMap = std::map<std::string, CertificateName, std::less<>>;

inline constexpr size_t kLargestIdentityMap = size_t{1} << 20;  // bytes

// Parses lines "NAME = ROLE/INDEX", as in
//
//   job = fashion
//   spiffe://cluster.local/ns/ml/sa/lockstep-worker = worker/*
//   admin.example.com = operator/steer
//
// Empty lines and lines that begin with '#' are comments. The line "job" names
// the job of the roles; it is needed if the process's own certificate has no
// name of Lockstep's. `source` names the text in messages; `job` is the job of
// the own certificate, or empty.
//
//   kInvalidArgument  another line, a name twice, or a name of Lockstep's own,
//                     which must not change its meaning; another job than
//                     `job`, or none in either place; says which line
absl::StatusOr<IdentityMap> ParseIdentityMap(absl::string_view text,
                                             absl::string_view source,
                                             absl::string_view job);

// Returns the job that such a text names; empty if it names none.
std::string JobInIdentityMap(absl::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_IDENTITY_MAP_H_
