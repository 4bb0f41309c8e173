#include "common/rpc/security/transport/transport_security.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/integration/common/rpc/security/raw_credentials.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CallWithBytes;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
// Longer than two refreshes of the watcher and the reader take together.
constexpr absl::Duration kPatience = absl::Seconds(60);

class TransportSecurityTest : public ::testing::Test {
 protected:
  void StartServer(const std::string& name) {
    testing::WriteTlsFiles(server_dir_.path(), authority_.Files(name));
    TransportSecurity::Options own;
    own.directory = server_dir_.path();
    own.tasks = tasks_;
    auto security = TransportSecurity::Load(own);
    ASSERT_OK(security);
    security_ = *std::move(security);
    GrpcServer::Options options;
    options.security = security_;
    auto server = GrpcServer::Start("127.0.0.1:0", {}, options);
    ASSERT_OK(server);
    server_ = *std::move(server);
    address_ = absl::StrCat("127.0.0.1:", server_->port());
  }

  // A client that expects ps 0 at the server's address.
  std::shared_ptr<TransportSecurity> Client(const TlsFiles& files) {
    testing::WriteTlsFiles(client_dir_.path(), files);
    return TransportSecurity::Load(
               {client_dir_.path(), "", {{address_, {TaskType::kPs, 0}}}})
        .value();
  }

  absl::Status Health(const std::shared_ptr<TransportSecurity>& security) {
    return CallWithBytes(MakeChannel(address_, ++connection_, security),
                         kHealth, "");
  }

  // The first status with a code other than `code`, or the last one.
  template <typename Call>
  absl::Status Until(bool ok, const Call& call) {
    const absl::Time end = absl::Now() + kPatience;
    absl::Status status = call();
    while (status.ok() != ok && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(100));
      status = call();
    }
    return status;
  }

  const TestAuthority authority_;
  const TempDir server_dir_;
  const TempDir client_dir_;
  std::vector<TaskId> tasks_;  // of the server
  std::shared_ptr<TransportSecurity> security_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  int connection_ = 0;
};

TEST_F(TransportSecurityTest, PeersOfOneJobReachEachOther) {
  StartServer("ps/0");
  EXPECT_THAT(Health(Client(authority_.Files("worker/1"))), IsOk());
}

TEST_F(TransportSecurityTest, ClientIsToldThatItReachedAnotherTask) {
  StartServer("ps/1");
  const auto client = Client(authority_.Files("worker/1"));
  EXPECT_THAT(Health(client),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("is ps 1 of job fashion, and not ps 0 of job "
                                 "fashion; check the address")));
  EXPECT_THAT(client->Troubles(), Contains(HasSubstr("is ps 1 of job")));
}

TEST_F(TransportSecurityTest, ServerOfAnotherAuthorityIsNotTrusted) {
  StartServer("ps/0");
  EXPECT_THAT(
      Health(Client(TestAuthority("stranger").Files("worker/1"))),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("lockstep://fashion/ps/0"),
                     HasSubstr("not signed by an authority of ca.crt"))));
}

TEST_F(TransportSecurityTest, WorkerCannotPoseAsAServer) {
  StartServer("worker/0");
  EXPECT_THAT(Health(Client(authority_.Files("worker/1"))),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("is worker 0 of job fashion, and not ps 0")));
}

TEST_F(TransportSecurityTest, ServerNamesTheCertificateThatItRefused) {
  StartServer("ps/0");
  const absl::Time now = absl::Now();
  const auto channel = testing::UncheckedChannel(
      address_, authority_.certificate(),
      authority_.Issue("worker/1",
                       {now - absl::Hours(2), now - absl::Minutes(5)}));
  EXPECT_THAT(CallWithBytes(channel, kHealth, ""), Not(IsOk()));
  EXPECT_THAT(security_->Troubles(),
              Contains(HasSubstr("a connection is refused: the certificate of "
                                 "lockstep://fashion/worker/1 expired 5 min")));
  EXPECT_GE(security_->troubles().failed_handshakes(), 1);
}

TEST_F(TransportSecurityTest, AuthorityThatEndsSoonIsToldBeforeIt) {
  const absl::Time end = absl::Now() + absl::Hours(24 * 10);
  TlsFiles files = authority_.Files("worker/1");
  files.authorities +=
      MakeAuthority("other", {absl::Now() - absl::Hours(1), end})
          .value()
          .certificate;
  const auto client = Client(files);
  EXPECT_LE(client->expires(), end);
  EXPECT_GT(client->own().not_after, end);
  EXPECT_THAT(Until(true,
                    [&] {
                      return client->Troubles().empty()
                                 ? absl::UnavailableError("no trouble")
                                 : absl::OkStatus();
                    }),
              IsOk());
  EXPECT_THAT(client->Troubles(),
              Contains(AllOf(HasSubstr("an authority in "),
                             HasSubstr("/ca.crt expires in 9 days"))));
}

TEST_F(TransportSecurityTest, OnlyTls13IsSpoken) {
  StartServer("ps/0");
  const auto connects = [&](const std::string& version) {
    const std::string command = absl::StrCat(
        "openssl s_client -connect ", address_, " -alpn h2 -", version,
        " -cert ", server_dir_.Join("tls.crt"), " -key ",
        server_dir_.Join("tls.key"), " </dev/null >/dev/null 2>&1");
    return std::system(command.c_str()) == 0;
  };
  EXPECT_TRUE(connects("tls1_3"));
  EXPECT_FALSE(connects("tls1_2"));
  EXPECT_FALSE(connects("tls1_1"));
}

TEST_F(TransportSecurityTest, NewFilesAreServedWithoutARestart) {
  StartServer("ps/0");
  const TestAuthority next("next authority");
  const auto client = Client(next.Files("worker/1"));
  EXPECT_THAT(Health(client), Not(IsOk()));
  testing::WriteTlsFiles(server_dir_.path(), next.Files("ps/0"));
  EXPECT_THAT(Until(true, [&] { return Health(client); }), IsOk());
}

TEST_F(TransportSecurityTest, BundleOfTwoAuthoritiesLetsBothKindsIn) {
  StartServer("ps/0");
  const TestAuthority next("next authority");
  TlsFiles both = authority_.Files("ps/0");
  both.authorities += next.certificate();
  testing::WriteTlsFiles(server_dir_.path(), both);
  TlsFiles newer = next.Files("worker/1");
  newer.authorities += authority_.certificate();
  const auto client = Client(newer);
  EXPECT_THAT(Until(true, [&] { return Health(client); }), IsOk());
  const auto old = Client(authority_.Files("worker/2"));
  EXPECT_THAT(Until(true, [&] { return Health(old); }), IsOk());
}

TEST_F(TransportSecurityTest, FilesThatDoNotFitAreNeverUsed) {
  StartServer("ps/0");
  const auto client = Client(authority_.Files("worker/1"));
  ASSERT_THAT(Health(client), IsOk());
  TlsFiles half = authority_.Files("ps/0");
  half.key = authority_.Files("ps/0").key;
  testing::WriteTlsFiles(server_dir_.path(), half);
  security_->Reload();
  EXPECT_THAT(security_->Troubles(),
              Contains(HasSubstr("tls.key does not fit tls.crt")));
  const absl::Time end = absl::Now() + absl::Seconds(3);
  while (absl::Now() < end) ASSERT_THAT(Health(client), IsOk());
  // Without its authority, with which the files would fit.
  TlsFiles elsewhere = TestAuthority("elsewhere").Files("ps/0");
  elsewhere.authorities = authority_.certificate();
  testing::WriteTlsFiles(server_dir_.path(), elsewhere);
  security_->Reload();
  EXPECT_THAT(security_->Troubles(),
              Contains(HasSubstr("not signed by an authority of ca.crt")));
  EXPECT_THAT(Health(client), IsOk());
  std::filesystem::remove(server_dir_.Join("tls.crt"));
  security_->Reload();
  EXPECT_THAT(Health(client), IsOk());
}

TEST_F(TransportSecurityTest, CertificateOfAnotherJobIsNotTaken) {
  StartServer("ps/0");
  const auto client = Client(authority_.Files("worker/1"));
  testing::WriteTlsFiles(server_dir_.path(),
                         authority_.Files("lockstep://other/ps/0"));
  security_->Reload();
  EXPECT_THAT(security_->Troubles(), Contains(HasSubstr("of job other")));
  EXPECT_EQ(security_->own().Owner(), "lockstep://fashion/ps/0");
  EXPECT_THAT(Health(client), IsOk());
}

TEST_F(TransportSecurityTest, CertificateOfAnotherTaskIsNotTaken) {
  tasks_ = {{TaskType::kPs, 0}};
  StartServer("ps/0");
  const auto client = Client(authority_.Files("worker/1"));
  testing::WriteTlsFiles(server_dir_.path(), authority_.Files("worker/1"));
  security_->Reload();
  EXPECT_THAT(security_->Troubles(),
              Contains(HasSubstr("that of worker 1 of job fashion, and this "
                                 "process is ps 0; put that task's files")));
  EXPECT_EQ(security_->own().Owner(), "lockstep://fashion/ps/0");
  EXPECT_THAT(Health(client), IsOk());
  testing::WriteTlsFiles(server_dir_.path(), authority_.Files("ps/*"));
  security_->Reload();
  EXPECT_EQ(security_->own().Owner(), "lockstep://fashion/ps/*");
}

TEST_F(TransportSecurityTest, TenRenewalsUnderLoadLoseNoCall) {
  StartServer("ps/0");
  const auto client = Client(authority_.Files("worker/1"));
  const auto channel = MakeChannel(address_, 0, client);
  ASSERT_THAT(CallWithBytes(channel, kHealth, ""), IsOk());
  for (int i = 0; i < 10; ++i) {
    testing::WriteTlsFiles(server_dir_.path(), authority_.Files("ps/0"));
    testing::WriteTlsFiles(client_dir_.path(), authority_.Files("worker/1"));
    security_->Reload();
    client->Reload();
    for (int call = 0; call < 20; ++call) {
      ASSERT_THAT(CallWithBytes(channel, kHealth, ""), IsOk());
      ASSERT_THAT(Health(client), IsOk()) << "renewal " << i;
    }
  }
}

TEST_F(TransportSecurityTest, RevokedClientIsRefusedFromThenOn) {
  StartServer("ps/0");
  TlsFiles files = authority_.Files("worker/1");
  const auto client = Client(files);
  ASSERT_THAT(Health(client), IsOk());
  TlsFiles own = authority_.Files("ps/0");
  own.revoked = authority_.Revoke(
      {FactsOf(ReadCertificates(files.certificate, "x")->at(0).get()).serial});
  testing::WriteTlsFiles(server_dir_.path(), own);
  EXPECT_THAT(Until(false, [&] { return Health(client); }), Not(IsOk()));
  EXPECT_THAT(security_->Troubles(), Contains(HasSubstr("is revoked")));
}

TEST_F(TransportSecurityTest, MappedNamesGiveRoles) {
  StartServer("ps/0");
  const std::string id = "spiffe://cluster.local/ns/ml/sa/worker";
  testing::WriteTlsFiles(client_dir_.path(), authority_.Files(id));
  testing::WriteText(client_dir_.Join("map"),
                     absl::StrCat("job = fashion\n", id, " = worker/*\n"),
                     0644);
  EXPECT_THAT(TransportSecurity::Load({client_dir_.path(), ""}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--identity_map")));
  const auto security =
      TransportSecurity::Load({client_dir_.path(), client_dir_.Join("map")});
  ASSERT_OK(security);
  EXPECT_EQ((*security)->job(), "fashion");
  EXPECT_EQ((*security)->ToCaller({{id}, {}}).roles(), Bit(Role::kWorker));
}

TEST_F(TransportSecurityTest,
       EmptyMapGivesNoRolesAndOneThatCannotBeReadIsNamed) {
  testing::WriteTlsFiles(client_dir_.path(), authority_.Files("worker/1"));
  testing::WriteText(client_dir_.Join("map"), "", 0644);
  EXPECT_THAT(
      TransportSecurity::Load({client_dir_.path(), client_dir_.Join("map")}),
      IsOk());
  for (const std::string& path :
       {client_dir_.path(), client_dir_.Join("none")}) {
    EXPECT_THAT(TransportSecurity::Load({client_dir_.path(), path}),
                StatusIs(absl::StatusCode::kNotFound,
                         HasSubstr("--identity_map: cannot read " + path)));
  }
}

TEST_F(TransportSecurityTest, StartWithoutValidFilesIsRefused) {
  EXPECT_THAT(TransportSecurity::Load({client_dir_.path(), ""}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("--tls_dir: cannot open " +
                                       client_dir_.Join("tls.crt")),
                             HasSubstr("lockstep certs make"))));
  TlsFiles half = authority_.Files("ps/0");
  half.key = authority_.Files("ps/0").key;
  testing::WriteTlsFiles(client_dir_.path(), half);
  EXPECT_THAT(
      TransportSecurity::Load({client_dir_.path(), ""}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("--tls_dir: the files in " + client_dir_.path())));
}

}  // namespace
}  // namespace lockstep
