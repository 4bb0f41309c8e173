// Every cell of the table of roles and methods, over real connections: the
// server has all services, whose methods answer "not implemented" to the calls
// that reach them.

#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/security/access_table.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/call_stream.grpc.pb.h"
#include "lockstep/v1/coordinator.grpc.pb.h"
#include "lockstep/v1/group.grpc.pb.h"
#include "lockstep/v1/mirror.grpc.pb.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "lockstep/v1/shard_control.grpc.pb.h"
#include "lockstep/v1/sync.grpc.pb.h"
#include "lockstep/v1/trace.grpc.pb.h"
#include "tests/integration/call.h"
#include "tests/integration/common/rpc/security/raw_credentials.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::CallWithBytes;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::lockstep::testing::UncheckedChannel;

constexpr RoleSet kChief = Bit(Role::kChief);
constexpr RoleSet kPs = Bit(Role::kPs);
constexpr RoleSet kWorker = Bit(Role::kWorker);
constexpr RoleSet kEvaluator = Bit(Role::kEvaluator);
constexpr RoleSet kReader = Bit(Role::kReader);
constexpr RoleSet kSteerer = Bit(Role::kSteerer);

// The roles that may call each method, written out: a test that took them from
// the table of the product would agree with any mistake in it.
std::map<std::string, RoleSet> ExpectedRoles() {
  const RoleSet all = kChief | kPs | kWorker | kEvaluator | kReader | kSteerer;
  const RoleSet members = kPs | kWorker | kEvaluator;
  std::map<std::string, RoleSet> roles = {
      {"/grpc.health.v1.Health/Check", all},
      {"/grpc.health.v1.Health/Watch", all},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
       kReader | kSteerer},
  };
  const auto add =
      [&](const std::string& service,
          const std::vector<std::pair<const char*, RoleSet>>& methods) {
        for (const auto& [method, may] : methods) {
          roles[absl::StrCat("/lockstep.v1.", service, "/", method)] = may;
        }
      };
  add("CallStreamService", {{"Calls", kWorker}});
  add("CoordinatorService", {{"ChangeSettings", kSteerer},
                             {"Checkpoint", kSteerer},
                             {"DescribeModel", kPs | kWorker},
                             {"GetPlan", kWorker | kEvaluator},
                             {"GetStatus", all},
                             {"Heartbeat", members},
                             {"Leave", members},
                             {"PutInitialValues", kWorker},
                             {"Register", members},
                             {"ReportEvaluation", kEvaluator},
                             {"Stop", kPs | kSteerer},
                             {"Unknown", 0}});
  add("GroupService",
      {{"Give", kChief | kWorker}, {"Greet", kChief | kWorker}});
  add("MirrorService", {{"FetchMeans", kPs}});
  add("ParameterService", {{"OpenSharedMemory", kWorker},
                           {"Pull", kChief | kWorker},
                           {"Push", kWorker}});
  for (const char* method :
       {"Activate", "BeginSnapshot", "CloseTokens", "Commit", "CreateShard",
        "EndSnapshot", "ExpireWorker", "ReadSnapshot", "ReplaceMember",
        "TakeAndApply", "TakeEpoch", "WriteParts"}) {
    add("ShardControlService", {{method, kChief}});
  }
  add("SyncService", {{"Announce", kWorker}, {"TakeToken", kWorker}});
  add("TraceService", {{"BeginTrace", kReader | kSteerer},
                       {"GetTrace", kReader | kSteerer},
                       {"ReportTrace", members}});
  return roles;
}

struct Peer {
  std::string title;
  RoleSet roles = 0;  // that its certificate gives it
  std::shared_ptr<grpc::Channel> channel;
};

class AccessMatrixTest : public ::testing::Test {
 protected:
  AccessMatrixTest() {
    TlsFiles files = authority_.Files("ps/0");
    const CertificateFacts facts =
        FactsOf(ReadCertificates(revoked_.certificate, "x")->at(0).get());
    files.revoked = authority_.Revoke({facts.serial});
    testing::WriteTlsFiles(directory_.path(), files);
    GrpcServer::Options options;
    options.security = TransportSecurity::Load({directory_.path(), ""}).value();
    server_ = GrpcServer::Start("127.0.0.1:0",
                                {&coordinator_, &parameter_, &mirror_, &group_,
                                 &sync_, &control_, &stream_, &trace_},
                                options)
                  .value();
    address_ = absl::StrCat("127.0.0.1:", server_->port());
  }

  Peer With(const std::string& title, RoleSet roles,
            const CertifiedKey& pair) const {
    return {title, roles,
            UncheckedChannel(address_, authority_.certificate(), pair)};
  }

  // True if the call got past the checks, as one that `may` does.
  static bool Passes(const Peer& peer, const std::string& method, bool may) {
    // A watch that is let in does not end.
    const absl::Duration timeout = may && absl::EndsWith(method, "/Watch")
                                       ? absl::Seconds(1)
                                       : testing::kCallTimeout;
    const absl::Status status =
        CallWithBytes(peer.channel, method, "", timeout);
    return !absl::IsPermissionDenied(status) &&
           !absl::IsUnauthenticated(status) && !absl::IsUnavailable(status);
  }

  std::vector<Peer> Peers() const {
    const absl::Time now = absl::Now();
    const TestAuthority stranger("stranger");
    const auto pair = [&](const std::string& name) {
      return authority_.Issue(name);
    };
    return {
        With("chief", Bit(Role::kChief), pair("chief/0")),
        With("ps", Bit(Role::kPs), pair("ps/1")),
        With("worker", Bit(Role::kWorker), pair("worker/1")),
        With("any worker", Bit(Role::kWorker), pair("worker/*")),
        With("evaluator", Bit(Role::kEvaluator), pair("evaluator/0")),
        With("op read", Bit(Role::kReader), pair("operator/read")),
        With("op steer", Bit(Role::kSteerer), pair("operator/steer")),
        With("worker 0 + chief", Bit(Role::kWorker) | Bit(Role::kChief),
             authority_.IssueAll({"worker/0", "chief/0"},
                                 TestAuthority::Valid())),
        With("other job", 0, pair("lockstep://other/operator/steer")),
        With("no name", 0, pair("https://example.com")),
        With("other CA", 0, stranger.Issue("operator/steer")),
        With("expired", 0,
             authority_.Issue("operator/steer",
                              {now - absl::Hours(2), now - absl::Hours(1)})),
        With("not yet", 0,
             authority_.Issue("operator/steer",
                              {now + absl::Hours(1), now + absl::Hours(2)})),
        With("revoked", 0, revoked_),
        With("no certificate", 0, {}),
        {"plain text", 0, MakeChannel(address_, 0, nullptr)},
    };
  }

  const TestAuthority authority_;
  const CertifiedKey revoked_ = authority_.Issue("operator/steer");
  const TempDir directory_;
  v1::CoordinatorService::Service coordinator_;
  v1::ParameterService::Service parameter_;
  v1::MirrorService::Service mirror_;
  v1::GroupService::Service group_;
  v1::SyncService::Service sync_;
  v1::ShardControlService::Service control_;
  v1::CallStreamService::Service stream_;
  v1::TraceService::Service trace_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
};

TEST_F(AccessMatrixTest, NoForbiddenCallPassesAndEveryAllowedOneDoes) {
  const std::map<std::string, RoleSet> expected = ExpectedRoles();
  for (const AccessRow& row : AccessTable()) {
    EXPECT_EQ(expected.count(std::string(row.method)), 1u)
        << row.method << " is not among the test's expected roles";
  }
  const std::vector<Peer> peers = Peers();
  int forbidden = 0;
  int passed = 0;
  int allowed = 0;
  int refused = 0;
  std::ostringstream out;  // the log has lines of its own
  out << std::left << std::setw(58) << "method";
  for (const Peer& peer : peers) out << " | " << peer.title;
  out << "\n";
  for (const auto& [method, roles] : expected) {
    out << std::setw(58) << method;
    for (const Peer& peer : peers) {
      const bool may = (roles & peer.roles) != 0;
      const bool passes = Passes(peer, method, may);
      EXPECT_EQ(passes, may) << peer.title << " " << method;
      (may ? allowed : forbidden) += 1;
      if (!may && passes) ++passed;
      if (may && !passes) ++refused;
      out << " | " << std::setw(static_cast<int>(peer.title.size()))
          << (passes ? "Y" : "-");
    }
    out << "\n";
  }
  out << passed << " of " << forbidden << " forbidden calls passed, " << refused
      << " of " << allowed << " allowed ones were refused\n";
  std::cout << out.str();
}

TEST_F(AccessMatrixTest, RefusalNamesTheCallerAndTheRolesThatMay) {
  const Peer worker = With("worker", 0, authority_.Issue("worker/1"));
  const absl::Status status =
      CallWithBytes(worker.channel, "/lockstep.v1.CoordinatorService/Stop", "");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(),
            "worker 1 of job fashion must not call "
            "\"/lockstep.v1.CoordinatorService/Stop\"; the roles that may: ps, "
            "operator/steer");
}

// A client that was let in and then asks for what is not its own.
TEST_F(AccessMatrixTest, BodyOfARefusedCallIsNotRead) {
  const Peer reader = With("reader", 0, authority_.Issue("operator/read"));
  // Larger than the server accepts, which only a permitted caller is told.
  const std::string body(32 << 20, 'x');
  EXPECT_EQ(CallWithBytes(reader.channel,
                          "/lockstep.v1.CoordinatorService/Stop", body)
                .code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace lockstep
