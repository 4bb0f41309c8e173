#include "common/process/listen_address.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ListenAddressTest, AHostThatResolvesIsTakenAsItIs) {
  for (const char* address : {"127.0.0.1:0", "127.0.0.1:2222", "[::1]:2222",
                              "localhost:2222", "localhost:0"}) {
    EXPECT_EQ(ListenAddress(address), address);
  }
}

// A name with an empty label is refused before any server is asked.
TEST(ListenAddressTest, ANameThatDoesNotResolveIsEveryAddress) {
  EXPECT_EQ(ListenAddress("no..name:2222"), "[::]:2222");
}

TEST(ListenAddressTest, InvalidAddressIsReturnedUnchanged) {
  EXPECT_EQ(ListenAddress("nonsense"), "nonsense");
}

}  // namespace
}  // namespace lockstep
