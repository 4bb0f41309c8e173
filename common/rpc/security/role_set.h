#ifndef LOCKSTEP_COMMON_RPC_SECURITY_ROLE_SET_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_ROLE_SET_H_

#include <cstdint>

#include "common/rpc/security/certificate_name.h"

namespace lockstep {

// A set of roles: bit i is set for the role with number i.
using RoleSet = uint32_t;

constexpr RoleSet Bit(Role role) {
  return RoleSet{1} << static_cast<int>(role);
}

inline constexpr RoleSet kEveryRole = (RoleSet{1} << kRoles) - 1;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_ROLE_SET_H_
