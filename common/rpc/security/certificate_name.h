#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATE_NAME_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATE_NAME_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/task_id.h"

namespace lockstep {

// The roles that a certificate can give to its owner. Their numbers are bits of
// a RoleSet.
enum class Role : int {
  kChief = 0,
  kPs = 1,
  kWorker = 2,
  kEvaluator = 3,
  kReader = 4,   // an operator: may look at the job
  kSteerer = 5,  // an operator: may also stop and change it
};
inline constexpr int kRoles = 6;

// "chief", "ps", "worker", "evaluator", "operator/read", "operator/steer".
absl::string_view RoleName(Role role);

// Returns the role of a task's certificate.
Role RoleOf(TaskType type);

// CertificateName is one name that a certificate gives to its owner: a task of
// a job, all tasks of one role, or an operator.
struct CertificateName {
  static constexpr size_t kLongestJob = 128;

  std::string job;  // letters, digits, '-', '_' and '.'
  Role role = Role::kReader;
  // Absent: any index of the role. Always absent for operators.
  std::optional<int> index;

  // True if the owner may speak as this task of the job.
  bool Covers(const TaskId& task) const;

  // "worker 1 of job fashion", "any worker of job fashion", "operator/read of
  // job fashion".
  std::string ToString() const;

  // "lockstep://fashion/worker/1"; ParseCertificateName() reads it back.
  std::string ToUri() const;

  bool operator==(const CertificateName&) const = default;
};

// Parses the URI names of certificates:
//
//   lockstep://JOB/ROLE/INDEX     ROLE: chief, ps, worker, evaluator; INDEX: a
//                                 number, or * for each task of the role
//   lockstep://JOB/operator/read  and lockstep://JOB/operator/steer
//   spiffe://DOMAIN/lockstep/JOB/ROLE/INDEX   means the same
//
// There is one spelling of each name: no other letter case, escapes, queries,
// leading zeros or further parts.
//
//   kInvalidArgument  any other text; says what is wrong with which part
absl::StatusOr<CertificateName> ParseCertificateName(absl::string_view uri);

// Parses "ROLE/INDEX" of such a name, for `job`. Errors as
// ParseCertificateName().
absl::StatusOr<CertificateName> ParseRolePath(absl::string_view path,
                                              absl::string_view job);

// Checks that a job's name can be part of a certificate's.
//
//   kInvalidArgument  empty, too long, or with other characters than letters,
//                     digits, '-', '_' and '.'
absl::Status CheckJobInName(absl::string_view job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATE_NAME_H_
