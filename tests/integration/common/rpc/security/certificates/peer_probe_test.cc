#include "common/rpc/security/certificates/peer_probe.h"

#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(20);

class PeerProbeTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrpcServer> Start(bool secure) {
    testing::WriteTlsFiles(directory_.path(), authority_.Files("ps/0"));
    GrpcServer::Options options;
    if (secure) {
      options.security =
          TransportSecurity::Load({directory_.path(), ""}).value();
    }
    return GrpcServer::Start("127.0.0.1:0", {}, options).value();
  }

  const TestAuthority authority_;
  const TempDir directory_;
};

TEST_F(PeerProbeTest, TellsWhoseCertificateAnswers) {
  const auto server = Start(/*secure=*/true);
  const TlsFiles own = authority_.Files("operator/read");
  const auto shown = ProbePeer("127.0.0.1", server->port(), &own, kTimeout);
  ASSERT_OK(shown);
  EXPECT_THAT(shown->facts.names.uris, ElementsAre("lockstep://fashion/ps/0"));
  EXPECT_EQ(shown->refusal, "");
}

TEST_F(PeerProbeTest, ServerThatRefusesTheOwnCertificateIsTold) {
  const auto server = Start(/*secure=*/true);
  const TlsFiles own = TestAuthority("stranger").Files("operator/read");
  const auto shown = ProbePeer("127.0.0.1", server->port(), &own, kTimeout);
  ASSERT_OK(shown);
  EXPECT_NE(shown->refusal, "");
  const auto without =
      ProbePeer("127.0.0.1", server->port(), nullptr, kTimeout);
  ASSERT_OK(without);
  EXPECT_NE(without->refusal, "");
}

TEST_F(PeerProbeTest, ServerWithoutTlsIsTold) {
  const auto server = Start(/*secure=*/false);
  EXPECT_THAT(ProbePeer("127.0.0.1", server->port(), nullptr, kTimeout),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PeerProbeTest, AddressWithoutServerIsUnavailable) {
  EXPECT_THAT(ProbePeer("127.0.0.1", 1, nullptr, kTimeout),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PeerProbeTest, NameThatDoesNotResolveIsNamed) {
  EXPECT_THAT(ProbePeer("no.such.host.invalid", 1, nullptr, kTimeout),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("the name no.such.host.invalid does not "
                                 "resolve: ")));
}

}  // namespace
}  // namespace lockstep
