#include "common/observe/metrics_server.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/raw_socket.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::RawSocket;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kPatienceMillis = 20'000;

std::vector<Metric> OneMetric() {
  return {{"m", "M.", Metric::Kind::kGauge, 1}};
}

// Returns everything that the server answers until it closes the connection.
std::string Ask(int port, const std::string& request) {
  const RawSocket socket(port);
  socket.Send(request);
  std::string answer;
  while (true) {
    const std::string more = socket.Receive(kPatienceMillis);
    if (more.empty()) return answer;
    answer += more;
  }
}

std::string Get(int port, const std::string& path) {
  return Ask(port, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
}

TEST(MetricsServerTest, MetricsAreReadAnewForEachRequest) {
  int reads = 0;
  auto server = MetricsServer::Start("127.0.0.1:0", [&] {
    ++reads;
    return std::vector<Metric>{
        {"reads", "R.", Metric::Kind::kGauge, static_cast<double>(reads)}};
  });
  ASSERT_OK(server);
  for (const char* expected : {"\r\n\r\n# HELP", "reads 2\n"}) {
    const std::string answer = Get((*server)->port(), "/metrics");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version"));
    EXPECT_THAT(answer, HasSubstr(expected));
  }
}

TEST(MetricsServerTest, HealthIsToldWithoutReadingMetrics) {
  int reads = 0;
  auto server = MetricsServer::Start("127.0.0.1:0", [&] {
    ++reads;
    return OneMetric();
  });
  ASSERT_OK(server);
  for (const char* path : {"/healthz", "/healthz?verbose"}) {
    const std::string answer = Get((*server)->port(), path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n")) << path;
    EXPECT_THAT(answer, EndsWith("\r\n\r\nok\n")) << path;
  }
  EXPECT_EQ(reads, 0);
}

TEST(MetricsServerTest, HealthIsThatOfWhoKnows) {
  absl::Status health = absl::UnavailableError("the server is deaf");
  auto server =
      MetricsServer::Start("127.0.0.1:0", OneMetric, [&] { return health; });
  ASSERT_OK(server);
  EXPECT_THAT(Get((*server)->port(), "/healthz"),
              AllOf(StartsWith("HTTP/1.1 503 Service Unavailable\r\n"),
                    EndsWith("\r\n\r\nthe server is deaf\n")));
  health = absl::OkStatus();
  EXPECT_THAT(Get((*server)->port(), "/healthz"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(MetricsServerTest, NothingElseIsServed) {
  auto server = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(server);
  for (const char* path :
       {"/", "/etc/passwd", "/metrics/../x", "/metricsx", "/healthzx"}) {
    EXPECT_THAT(Get((*server)->port(), path), StartsWith("HTTP/1.1 404"))
        << path;
  }
}

TEST(MetricsServerTest, EndlessBodyIsNotRead) {
  auto server = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(server);
  for (const char* how :
       {"Content-Length: 600000000", "Transfer-Encoding: chunked"}) {
    const RawSocket socket((*server)->port());
    ASSERT_TRUE(socket.Send(
        absl::StrCat("POST /metrics HTTP/1.1\r\n", how, "\r\n\r\n")));
    EXPECT_THAT(socket.Receive(), StartsWith("HTTP/1.1 405")) << how;
    EXPECT_FALSE(socket.Send(std::string(32 << 20, 'x'))) << how;
  }
}

TEST(MetricsServerTest, EndlessLineIsNotRead) {
  auto server = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(server);
  const RawSocket socket((*server)->port());

  EXPECT_FALSE(socket.Send("GET /" + std::string(32 << 20, 'x')));
}

TEST(MetricsServerTest, IdleConnectionsDoNotStopAScrape) {
  auto server = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(server);
  std::vector<RawSocket> idle;
  for (int i = 0; i < 8; ++i) idle.emplace_back((*server)->port());
  idle.front().Send("GET /met");

  EXPECT_THAT(Get((*server)->port(), "/metrics"), HasSubstr("m 1\n"));
  for (const RawSocket& socket : idle) {
    EXPECT_TRUE(socket.IsClosedWithin(kPatienceMillis));
  }
}

TEST(MetricsServerTest, ConnectionsBeyondTheQueueAreClosed) {
  auto server = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(server);
  std::vector<RawSocket> idle;
  for (int i = 0; i < 200; ++i) idle.emplace_back((*server)->port());

  EXPECT_TRUE(idle.back().IsClosedWithin(kPatienceMillis));
}

TEST(MetricsServerTest, PortThatIsTakenIsRefused) {
  auto first = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(first);
  EXPECT_THAT(
      MetricsServer::Start(absl::StrCat("127.0.0.1:", (*first)->port()),
                           OneMetric),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is the port taken")));
}

TEST(MetricsServerTest, AddressWithoutHostOrPortIsRefused) {
  for (const char* address :
       {"", "9100", ":9100", "host:", "host:x", "host:-1", "host:65536"}) {
    EXPECT_THAT(MetricsServer::Start(address, OneMetric),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected host:port")))
        << address;
  }
}

TEST(MetricsServerTest, ServerThatWasNeverAskedEnds) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(MetricsServer::Start("127.0.0.1:0", OneMetric));
  }
}

}  // namespace
}  // namespace lockstep
