#include "common/rpc/connection_advice.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "common/rpc/tcp_listener.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ConnectionAdviceTest : public ::testing::Test {
 protected:
  ~ConnectionAdviceTest() override { SetOwnSecurity(nullptr); }

  std::shared_ptr<TransportSecurity> Load(const TlsFiles& files) {
    testing::WriteTlsFiles(directory_.path(), files);
    return TransportSecurity::Load({directory_.path(), ""}).value();
  }
  std::string Start(std::shared_ptr<TransportSecurity> security) {
    GrpcServer::Options options;
    options.security = std::move(security);
    server_ = GrpcServer::Start("127.0.0.1:0", {}, options).value();
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  const TestAuthority authority_;
  const TempDir directory_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(ConnectionAdviceTest, ServerWithTlsAndClientWithout) {
  const std::string address = Start(Load(authority_.Files("ps/0")));
  EXPECT_THAT(
      ConnectionAdvice(address),
      AllOf(HasSubstr("lockstep://fashion/ps/0"), HasSubstr("speaks TLS"),
            HasSubstr("give --tls_dir, or LOCKSTEP_TLS_DIR to a "
                      "program of your own")));
  EXPECT_THAT(ConnectionAdvice(address, "--this"), HasSubstr("give --this"));
}

TEST_F(ConnectionAdviceTest, NameThatDoesNotResolve) {
  EXPECT_THAT(ConnectionAdvice("no.such.host.invalid:1"),
              AllOf(HasSubstr("the name no.such.host.invalid does not resolve"),
                    HasSubstr("check its spelling")));
}

TEST_F(ConnectionAdviceTest, ServerWithoutTlsAndClientWith) {
  const std::string address = Start(nullptr);
  SetOwnSecurity(Load(authority_.Files("worker/0")));
  EXPECT_THAT(ConnectionAdvice(address), HasSubstr("speaks no TLS"));
}

TEST_F(ConnectionAdviceTest, ServerWithoutRoomIsNotTakenForOneWithoutTls) {
  const auto listener =
      TcpListener::Listen("127.0.0.1:0", {.all = 0, .of_one_address = 0})
          .value();
  listener->Start([](int, int) {});
  SetOwnSecurity(Load(authority_.Files("worker/0")));
  EXPECT_EQ(ConnectionAdvice(absl::StrCat("127.0.0.1:", listener->port())), "");
}

TEST_F(ConnectionAdviceTest, ServerThatRefusesTheCertificate) {
  const std::string address = Start(Load(authority_.Files("ps/0")));
  SetOwnSecurity(Load(TestAuthority("stranger").Files("worker/0")));
  EXPECT_THAT(ConnectionAdvice(address),
              HasSubstr("refuses the certificate of lockstep://fashion/worker/"
                        "0; its log says why"));
}

TEST_F(ConnectionAdviceTest, NothingIsWrongWithCertificates) {
  const std::string address = Start(Load(authority_.Files("ps/0")));
  SetOwnSecurity(Load(authority_.Files("worker/0")));
  EXPECT_EQ(ConnectionAdvice(address), "");
  SetOwnSecurity(nullptr);
  EXPECT_EQ(ConnectionAdvice("127.0.0.1:1"), "");
  EXPECT_EQ(ConnectionAdvice(Start(nullptr)), "");
}

}  // namespace
}  // namespace lockstep
