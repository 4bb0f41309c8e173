#include "common/cluster/host_port.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

struct GoodCase {
  const char* text;
  const char* host;
  int port;
  const char* printed;
};

class GoodHostPortTest : public ::testing::TestWithParam<GoodCase> {};

TEST_P(GoodHostPortTest, IsTakenApartAndPutTogether) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(GetParam().text);

  ASSERT_OK(parsed);
  EXPECT_EQ(parsed->host, GetParam().host);
  EXPECT_EQ(parsed->port, GetParam().port);
  EXPECT_EQ(parsed->ToString(), GetParam().printed);
}

INSTANTIATE_TEST_SUITE_P(
    All, GoodHostPortTest,
    ::testing::Values(
        GoodCase{"localhost:12345", "localhost", 12345, "localhost:12345"},
        GoodCase{"j-ps-0.ns.svc:2222", "j-ps-0.ns.svc", 2222,
                 "j-ps-0.ns.svc:2222"},
        GoodCase{"ps0.ns.svc.:1", "ps0.ns.svc.", 1, "ps0.ns.svc.:1"},
        GoodCase{"10.0.0.7:65535", "10.0.0.7", 65535, "10.0.0.7:65535"},
        GoodCase{"[::1]:2222", "::1", 2222, "[::1]:2222"},
        GoodCase{"[fe80::1%eth0]:80", "fe80::1%eth0", 80, "[fe80::1%eth0]:80"},
        GoodCase{"grpc://ps0:2222", "ps0", 2222, "ps0:2222"},
        GoodCase{"grpc://[::1]:2222", "::1", 2222, "[::1]:2222"},
        GoodCase{"my_host:0", "my_host", 0, "my_host:0"}));

struct BadCase {
  std::string text;
  const char* message;
};

class BadHostPortTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadHostPortTest, IsRefusedWithTheReason) {
  EXPECT_THAT(ParseHostPort(GetParam().text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().message)))
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadHostPortTest,
    ::testing::Values(
        BadCase{"", "the port is missing"},
        BadCase{"ps0", "the port is missing; write \"host:port\""},
        BadCase{"ps0:", "the port \"\" is not a number"},
        BadCase{"ps0:http", "\"http\" is not a number from 1 to 65535"},
        BadCase{"ps0:65536", "\"65536\" is not a number"},
        BadCase{"ps0:222222", "is not a number"},
        BadCase{"ps0:-1", "\"-1\" is not a number"},
        BadCase{"ps0:+1", "is not a number"},
        BadCase{"ps0: 1", "is not a number"},
        BadCase{"ps0:2222/", "is not a number"},
        BadCase{":2222", "the host is empty"},
        BadCase{".:2222", "the host is empty"},
        BadCase{" ps0:2222", "a character that no host name has"},
        BadCase{"user@ps0:2222", "a character that no host name has"},
        BadCase{std::string("ps\0:1", 5), "a character that no host name has"},
        BadCase{"p\xC3\xA9:1", "a character that no host name has"},
        BadCase{std::string(254, 'a') + ":1", "longer than 253"},
        BadCase{"::1:2222", "write an IPv6 address as \"[::1]:port\""},
        BadCase{"[::1]", "\"]:port\" is missing"},
        BadCase{"[::1]2222", "\"]:port\" is missing"},
        BadCase{"[::1", "\"]:port\" is missing"},
        BadCase{"[]:2222", "no IPv6 address"},
        BadCase{"[ps0]:2222", "no IPv6 address"},
        BadCase{"[::1]]:2222", "no IPv6 address"},
        BadCase{"[fd00::zz]:2222", "no IPv6 address"},
        BadCase{"[1:2:3:4:5:6:7:8:9]:2222", "no IPv6 address"},
        BadCase{"[fe80::1%]:2222", "no IPv6 address"},
        BadCase{"[fe80::1%e:0]:2222", "no IPv6 address"},
        BadCase{"10.0.0.256:2222", "the host is no IPv4 address"},
        BadCase{"http://ps0:2222", "only the scheme \"grpc://\""},
        BadCase{"grpc://grpc://ps0:2222", "only the scheme \"grpc://\""}));

TEST(HostPortTest, CanonicalFormIgnoresCaseAndTrailingDot) {
  const std::string canonical = ParseHostPort("ps0.ns:2222")->Canonical();

  EXPECT_EQ(ParseHostPort("PS0.ns.:2222")->Canonical(), canonical);
  EXPECT_EQ(ParseHostPort("ps0.ns:02222")->Canonical(), canonical);
  EXPECT_NE(ParseHostPort("ps0.ns:2223")->Canonical(), canonical);
  EXPECT_EQ(ParseHostPort("[FE80::1]:1")->Canonical(), "[fe80::1]:1");
}

TEST(HostPortTest, CanonicalFormIsOneForAllSpellingsOfAnAddress) {
  const auto canonical = [](const char* text) {
    return ParseHostPort(text)->Canonical();
  };

  EXPECT_EQ(canonical("[fd00:0:0::1]:1"), canonical("[fd00::1]:1"));
  EXPECT_EQ(canonical("[fd00::0001]:1"), canonical("[fd00::1]:1"));
  EXPECT_EQ(canonical("[FE80:0::1%eth0]:1"), "[fe80::1%eth0]:1");
  EXPECT_NE(canonical("[fe80::1%eth0]:1"), canonical("[fe80::1%eth1]:1"));
  EXPECT_EQ(canonical("[::ffff:10.0.0.1]:1"), canonical("10.0.0.1:1"));
  EXPECT_EQ(canonical("LocalHost:1"), canonical("127.0.0.1:1"));
  EXPECT_NE(canonical("localhost:1"), canonical("localhost:2"));
}

}  // namespace
}  // namespace lockstep
