#include "common/membership/unreachable.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(UnreachableTest, ANameThatDoesNotResolveIsNamed) {
  EXPECT_EQ(DescribeUnreachable(
                "no.such.host.invalid:2222",
                "DNS resolution failed for no.such.host.invalid:2222: UNKNOWN"),
            "the name no.such.host.invalid does not resolve");
}

TEST(UnreachableTest, APortOnWhichNothingListensIsSaid) {
  EXPECT_EQ(DescribeUnreachable(
                "127.0.0.1:1",
                "failed to connect to all addresses; last error: UNKNOWN: "
                "ipv4:127.0.0.1:1: Failed to connect to remote host: "
                "Connection refused"),
            "nothing listens there");
}

TEST(UnreachableTest, OtherWordsStay) {
  EXPECT_EQ(DescribeUnreachable("h:1", "Deadline Exceeded"),
            "Deadline Exceeded");
  EXPECT_EQ(DescribeUnreachable("", ""), "");
}

}  // namespace
}  // namespace lockstep
