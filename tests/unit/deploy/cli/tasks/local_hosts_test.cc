#include "deploy/cli/tasks/local_hosts.h"

#include <limits.h>
#include <unistd.h>

#include <map>

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

LocalHosts Box() {
  const std::map<std::string, std::vector<std::string>> names = {
      {"alias", {"10.0.0.7", "fd00::7"}},
      {"mixed", {"10.0.0.7", "10.0.0.8"}},
      {"elsewhere", {"10.0.0.8"}}};
  return LocalHosts(
      {"Box", {"10.0.0.7", "fd00::7"}, [names](const std::string& host) {
         const auto found = names.find(host);
         return found == names.end() ? std::vector<std::string>()
                                     : found->second;
       }});
}

TEST(LocalHostsTest, LoopbackIsLocal) {
  EXPECT_TRUE(Box().Contains("localhost"));
  EXPECT_TRUE(Box().Contains("LocalHost."));
  EXPECT_TRUE(Box().Contains("ps0.localhost"));
  EXPECT_TRUE(Box().Contains("127.0.0.1"));
  EXPECT_TRUE(Box().Contains("127.9.9.9"));
  EXPECT_TRUE(Box().Contains("::1"));
  EXPECT_TRUE(Box().Contains("0:0:0:0:0:0:0:1"));
}

TEST(LocalHostsTest, OwnNameAndAddressesAreLocal) {
  EXPECT_TRUE(Box().Contains("box"));
  EXPECT_TRUE(Box().Contains("10.0.0.7"));
  EXPECT_TRUE(Box().Contains("FD00:0::7"));
}

TEST(LocalHostsTest, NamesAreLocalIfAllTheirAddressesAre) {
  EXPECT_TRUE(Box().Contains("alias"));
  EXPECT_FALSE(Box().Contains("mixed"));
  EXPECT_FALSE(Box().Contains("elsewhere"));
  EXPECT_FALSE(Box().Contains("unknown"));
}

TEST(LocalHostsTest, NamesResolveAsTheyStand) {
  EXPECT_TRUE(Box().Resolves("alias"));
  EXPECT_TRUE(Box().Resolves("10.0.0.7"));
  EXPECT_TRUE(Box().Resolves("::1"));
  EXPECT_FALSE(Box().Resolves("alias."));
  EXPECT_FALSE(Box().Resolves("box"));
  EXPECT_FALSE(Box().Resolves("ps0.localhost"));
}

TEST(LocalHostsTest, UnspecifiedAddressIsNoHostOfTheMachine) {
  EXPECT_FALSE(Box().Contains("0.0.0.0"));
  EXPECT_FALSE(Box().Contains("::"));
  EXPECT_FALSE(Box().Contains(""));
}

TEST(LocalHostsTest, LooksLikeLoopbackIsNotEnough) {
  EXPECT_FALSE(Box().Contains("127.0.0.1.example"));
  EXPECT_FALSE(Box().Contains("localhost.example"));
}

TEST(LocalHostsTest, ThisMachineKnowsItself) {
  char name[HOST_NAME_MAX + 1] = {};
  ASSERT_EQ(gethostname(name, HOST_NAME_MAX), 0);

  const LocalHosts hosts = LocalHosts::OfThisMachine();

  EXPECT_TRUE(hosts.Contains(name));
  EXPECT_TRUE(hosts.Contains("127.0.0.1"));
  EXPECT_FALSE(hosts.Contains("192.0.2.1"));
}

}  // namespace
}  // namespace lockstep::cli
