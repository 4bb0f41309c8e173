#ifndef LOCKSTEP_COMMON_RPC_SECURITY_ACCESS_TABLE_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_ACCESS_TABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/rpc/security/caller.h"
#include "common/rpc/security/role_set.h"

namespace lockstep {

// One row of the table: a method and the roles that may call it.
struct AccessRow {
  absl::string_view method;  // "/package.Service/Method"
  RoleSet roles = 0;
};

// The whole table: each method of each service, also of the health service and
// reflection. No role may call a method without a row.
absl::Span<const AccessRow> AccessTable();

// Returns the roles that may call a method, given by its path; 0: none.
RoleSet RolesThatMay(absl::string_view method);

// Checks a call by its path alone, before its body is read.
//
//   kPermissionDenied  the caller's roles are not in the method's row; names
//                      both
absl::Status CheckMayCall(const Caller& caller, absl::string_view method);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_ACCESS_TABLE_H_
