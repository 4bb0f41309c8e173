#include "common/rpc/own_server.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;

constexpr absl::Duration kPatience = absl::Seconds(30);

TEST(OwnServerTest, CheckSucceedsOnlyWhileTheServerServes) {
  auto server = GrpcServer::Start("127.0.0.1:0", {});
  ASSERT_OK(server);
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());

  EXPECT_THAT(CheckOwnServer(address, kPatience), IsOk());

  (*server)->SetServing(false);
  EXPECT_THAT(CheckOwnServer(address, kPatience),
              StatusIs(absl::StatusCode::kUnavailable));

  // A new connection each time: the one before does not answer for it.
  (*server)->SetServing(true);
  EXPECT_THAT(CheckOwnServer(address, kPatience), IsOk());
  server->reset();
  EXPECT_THAT(CheckOwnServer(address, absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(OwnServerTest, ServerWithAnExpiredCertificateIsWellWhileItShakesHands) {
  const TempDir directory;
  const TestAuthority authority;
  const absl::Time now = absl::Now();
  testing::WriteTlsFiles(
      directory.path(),
      authority.FilesOf(authority.Issue(
          "chief/0", {now - absl::Hours(1), now + absl::Seconds(5)})));
  const auto security = TransportSecurity::Load({directory.path(), ""});
  ASSERT_OK(security);
  SetOwnSecurity(*security);
  auto server = GrpcServer::Start("127.0.0.1:0", {});
  ASSERT_OK(server);
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());

  // The certificate is valid by the clock of the machine.
  while (absl::Now() <= (*security)->own().not_after + absl::Seconds(1)) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_THAT(CheckOwnServer(address, kPatience), IsOk());

  server->reset();
  EXPECT_THAT(CheckOwnServer(address, absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kUnavailable));
  SetOwnSecurity(nullptr);
}

}  // namespace
}  // namespace lockstep
