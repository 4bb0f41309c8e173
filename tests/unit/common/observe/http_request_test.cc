#include "common/observe/http_request.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(HttpRequestTest, AnswerIsChosenByMethodPathAndHost) {
  const auto request = ParseHttpRequest(
      "GET /status.json?fresh=1 HTTP/1.1\r\nAccept: */*\r\n"
      "hOST:  Chief.Example:8080 \r\n\r\nbody");
  ASSERT_OK(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/status.json");
  EXPECT_EQ(request->host, "chief.example");
}

TEST(HttpRequestTest, HostMayBeMissingAndMayBeAnyAddress) {
  EXPECT_EQ(ParseHttpRequest("GET / HTTP/1.0\r\n\r\n")->host, "");
  for (const auto& [header, host] :
       {std::pair{"[::1]:80", "[::1]"}, {"[::1]", "[::1]"}, {"a", "a"}}) {
    EXPECT_EQ(ParseHttpRequest(
                  absl::StrCat("GET / HTTP/1.1\r\nHost: ", header, "\r\n\r\n"))
                  ->host,
              host);
  }
}

TEST(HttpRequestTest, OtherTextIsRefused) {
  const auto refuses = [](const std::string& text, const char* why) {
    EXPECT_THAT(ParseHttpRequest(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << text;
  };
  for (const char* text : {"", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n"}) {
    refuses(text, "the headers have no end");
  }
  for (const char* text :
       {"", "GET /", "GET / HTTP/2", "GET x HTTP/1.1", " / HTTP/1.1",
        "GET /\x01 HTTP/1.1", "GET /\xc3\xa4 HTTP/1.1", "GET /  HTTP/1.1"}) {
    refuses(absl::StrCat(text, "\r\n\r\n"), "the first line is not");
  }
  for (const char* hosts :
       {"Host: a\r\nhost: a", "Host: a\x01", "host: \xc3\xa4"}) {
    refuses(absl::StrCat("GET / HTTP/1.1\r\n", hosts, "\r\n\r\n"),
            "Host must be one plain name");
  }
}

TEST(HttpRequestTest, OwnHostsAreNumbersLocalhostAndNames) {
  for (const char* own :
       {"", "localhost", "127.0.0.1", "10.1.2.3", "[::1]", "[fe80::1]", "a"}) {
    EXPECT_TRUE(IsOwnHost(own, {"a", "b"})) << own;
  }
  for (const char* other :
       {"c", "localhost.evil.example", "127.0.0.1.evil.example", "1.2.3",
        "[::1", "::1", "[127.0.0.1]", "2130706433"}) {
    EXPECT_FALSE(IsOwnHost(other, {"a", "b"})) << other;
  }
}

}  // namespace
}  // namespace lockstep
