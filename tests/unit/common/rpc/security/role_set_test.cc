#include "common/rpc/security/role_set.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RoleSetTest, EveryRoleHasABitOfItsOwn) {
  RoleSet seen = 0;
  for (int role = 0; role < kRoles; ++role) {
    const RoleSet bit = Bit(static_cast<Role>(role));
    EXPECT_EQ(seen & bit, 0U) << role;
    seen |= bit;
  }
  EXPECT_EQ(seen, kEveryRole);
}

}  // namespace
}  // namespace lockstep
