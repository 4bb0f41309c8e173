#include "common/observe/peer_user.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr char kTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
    "retrnsmt"
    "   uid  timeout inode\n"
    "   0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 "
    "00000000"
    "  1000        0 16001 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:2328 0100007F:D431 01 00000000:00000000 00:00000000 "
    "00000000"
    "  1000        0 16002 1 0000000000000000 20 4 30 10 -1\n"
    "   2: 0100007F:D431 0100007F:2328 01 00000000:00000000 00:00000000 "
    "00000000"
    "   1007        0 16003 1 0000000000000000 20 4 30 10 -1\n"
    "   3: 0100007F:D432 0100007F:2328 04 00000000:00000000 00:00000000 "
    "00000000"
    "     0        0 0 1 0000000000000000 20 4 30 10 -1\n";

TEST(PeerUserTest, TheOwnerIsThatOfThePeersEnd) {
  EXPECT_EQ(SocketOwner(kTable, "0100007F:D431", "0100007F:2328"), 1007u);
  EXPECT_EQ(SocketOwner(kTable, "0100007F:2328", "0100007F:D431"), 1000u);
}

// The kernel names user 0 for a socket that its process has closed.
TEST(PeerUserTest, AClosedSocketHasNoOwner) {
  EXPECT_EQ(SocketOwner(kTable, "0100007F:D432", "0100007F:2328"),
            std::nullopt);
}

TEST(PeerUserTest, APeerOfAnotherMachineHasNoOwner) {
  EXPECT_EQ(SocketOwner(kTable, "0200000A:D431", "0100007F:2328"),
            std::nullopt);
  EXPECT_EQ(SocketOwner("", "0100007F:D431", "0100007F:2328"), std::nullopt);
  EXPECT_FALSE(IsPeerOfOwnUser(-1));
}

}  // namespace
}  // namespace lockstep
