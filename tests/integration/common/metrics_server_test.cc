#include "common/metrics_server.h"

#include <httplib.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;

std::vector<Metric> OneMetric() {
  return {{"m", "M.", Metric::Kind::kGauge, 1}};
}

TEST(MetricsServerTest, MetricsAreReadAnewForEachRequest) {
  int reads = 0;
  auto server = MetricsServer::Start("127.0.0.1:0", [&] {
    ++reads;
    return std::vector<Metric>{
        {"reads", "R.", Metric::Kind::kGauge, static_cast<double>(reads)}};
  });
  ASSERT_OK(server);
  httplib::Client client("127.0.0.1", (*server)->port());
  for (const char* expected : {"reads 1\n", "reads 2\n"}) {
    const httplib::Result result = client.Get("/metrics");
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 200);
    EXPECT_THAT(result->body, ::testing::HasSubstr(expected));
    EXPECT_THAT(result->get_header_value("Content-Type"),
                ::testing::StartsWith("text/plain"));
  }
}

TEST(MetricsServerTest, NothingElseIsServed) {
  auto server = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(server);
  httplib::Client client("127.0.0.1", (*server)->port());
  for (const char* path : {"/", "/etc/passwd", "/metrics/../x"}) {
    const httplib::Result result = client.Get(path);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 404) << path;
  }
}

TEST(MetricsServerTest, PortThatIsTakenIsRefused) {
  auto first = MetricsServer::Start("127.0.0.1:0", OneMetric);
  ASSERT_OK(first);
  EXPECT_THAT(MetricsServer::Start(absl::StrCat("127.0.0.1:", (*first)->port()),
                                   OneMetric),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::HasSubstr("is the port taken")));
}

TEST(MetricsServerTest, AddressWithoutHostOrPortIsRefused) {
  for (const char* address :
       {"", "9100", ":9100", "host:", "host:x", "host:-1", "host:65536"}) {
    EXPECT_THAT(MetricsServer::Start(address, OneMetric),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::HasSubstr("expected host:port")))
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
