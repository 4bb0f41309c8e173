// A member of the job, with a certificate, that misbehaves: the limits of a
// server hold for it, too.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/integration/common/rpc/reading_service.h"
#include "tests/testing/http2_peer.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"
#include "tests/testing/tls_tunnel.h"

namespace lockstep::testing {
namespace {

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";

class MemberLimitsTest : public ::testing::Test {
 protected:
  MemberLimitsTest() {
    WriteTlsFiles(Dir("ps"), authority_.Files("ps/0"));
    WriteTlsFiles(Dir("worker"), authority_.Files("worker/1"));
    WriteTlsFiles(Dir("other"), authority_.Files("worker/2"));
  }

  std::string Dir(const std::string& name) const {
    return directory_.Join(name);
  }

  void Start(GrpcServer::Options options) {
    security_ = TransportSecurity::Load({Dir("ps"), ""}).value();
    options.security = security_;
    server_ = GrpcServer::Start("127.0.0.1:0", {&service_}, options).value();
    address_ = absl::StrCat("127.0.0.1:", server_->port());
    tunnel_ = std::make_unique<TlsTunnel>(server_->port(), Dir("worker"));
    other_ = TransportSecurity::Load(
                 {Dir("other"), "", {{address_, {TaskType::kPs, 0}}}})
                 .value();
  }

  std::shared_ptr<grpc::Channel> OtherChannel() {
    return MakeChannel(address_, ++connection_, other_);
  }

  // That another member is served; repeats while connections still count.
  absl::Status OtherIsServed() {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (true) {
      absl::Status answer = CallWithBytes(OtherChannel(), kHealth, "");
      if (answer.ok() || absl::Now() > deadline) return answer;
      absl::SleepFor(absl::Milliseconds(50));
    }
  }

  const TestAuthority authority_;
  const TempDir directory_;
  ReadingService service_;
  std::shared_ptr<TransportSecurity> security_;
  std::shared_ptr<TransportSecurity> other_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  std::unique_ptr<TlsTunnel> tunnel_;
  int connection_ = 0;
};

TEST_F(MemberLimitsTest, MessagesThatNeverEndAreNotHeldWithoutLimit) {
  GrpcServer::Options options;
  options.largest_message = -1;
  options.memory = 32 * kMebibyte;
  Start(options);
  const size_t before = ResidentBytes();

  bool all_taken = true;
  std::deque<Http2Peer> peers;
  for (int i = 0; i < 2; ++i) peers.emplace_back(tunnel_->port());
  ASSERT_EQ(tunnel_->handshakes(), 2);
  for (Http2Peer& peer : peers) {
    const uint32_t stream = peer.Open(kCalls);
    all_taken = peer.BeginMessage(stream, 1 << 30) &&
                peer.SendBytes(stream, 256 * kMebibyte) && all_taken;
  }

  EXPECT_FALSE(all_taken);
  // Plus the 256 MiB of freed memory that an address sanitizer keeps.
  EXPECT_LT(ResidentBytes(), before + (160 + 256) * kMebibyte);
  EXPECT_OK(OtherIsServed());
}

TEST_F(MemberLimitsTest, CallsOfAConnectionAreLimited) {
  Start({});
  Http2Peer peer(tunnel_->port());
  ASSERT_EQ(tunnel_->handshakes(), 1);
  uint32_t last = 0;
  for (int i = 0; i < 256; ++i) last = peer.Open(kCalls);
  EXPECT_FALSE(peer.EndsWithin(last, 500));

  const uint32_t one_more = peer.Open(kCalls);
  EXPECT_TRUE(peer.EndsWithin(one_more, 30'000));
  EXPECT_OK(OtherIsServed());
}

TEST_F(MemberLimitsTest, ConnectionWhoseHeaderDoesNotEndIsClosed) {
  Start({});
  Http2Peer peer(tunnel_->port());
  ASSERT_EQ(tunnel_->handshakes(), 1);
  const uint32_t call = peer.BeginHeader(1 << 20);

  EXPECT_TRUE(peer.EndsWithin(call, 30'000));
  EXPECT_OK(OtherIsServed());
}

// CVE-2023-1428: gRPC's server aborted at such a header, if one behind it got
// the call beyond the limit of all its headers.
TEST_F(MemberLimitsTest, OddHeadersBeyondTheLimitOfACallEndThatCallAlone) {
  Start({});
  const std::vector<Http2Peer::Headers> odd = {{{"te", "x"}},
                                               {{":scheme", "x"}},
                                               {{"grpclb_client_stats", "x"}},
                                               {{"x-bin", "!"}},
                                               {{"grpc-timeout", "x"}}};
  for (Http2Peer::Headers headers : odd) {
    Http2Peer peer(tunnel_->port());
    headers.emplace_back("long", std::string(12 << 10, 'h'));
    const uint32_t call = peer.Open(kHealth, headers);

    EXPECT_TRUE(peer.EndsWithin(call, 30'000)) << headers[0].first;
  }
  EXPECT_OK(OtherIsServed());
}

TEST_F(MemberLimitsTest, SleepingConnectionsTakeNoMoreThanTheirShare) {
  GrpcServer::Options options;
  options.connections = {4, 4};
  Start(options);
  const auto early = OtherChannel();
  ASSERT_OK(CallWithBytes(early, kHealth, ""));
  {
    std::deque<Http2Peer> sleeping;
    for (int i = 0; i < 12; ++i) sleeping.emplace_back(tunnel_->port());
    EXPECT_LE(tunnel_->handshakes(), 3);
    EXPECT_OK(CallWithBytes(early, kHealth, ""));
  }
  EXPECT_OK(OtherIsServed());
}

TEST_F(MemberLimitsTest, HandshakeThatDoesNotGoOnIsClosed) {
  Start({});
  const RawSocket silent(server_->port());
  const RawSocket half(server_->port());
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // of a ClientHello

  EXPECT_TRUE(silent.IsClosedWithin(60'000));
  EXPECT_TRUE(half.IsClosedWithin(60'000));
}

// A certificate is checked at the handshake alone, and so again when its
// connection has reached its age.
TEST_F(MemberLimitsTest, RevokedMemberLosesItsConnectionAtItsAge) {
  GrpcServer::Options options;
  options.longest_connection = absl::Seconds(3);
  Start(options);
  const auto channel = OtherChannel();
  ASSERT_OK(CallWithBytes(channel, kHealth, ""));
  TlsFiles own = authority_.Files("ps/0");
  own.revoked = authority_.Revoke({other_->own().serial});
  WriteTlsFiles(Dir("ps"), own);
  security_->Reload();
  EXPECT_FALSE(CallWithBytes(OtherChannel(), kHealth, "").ok());

  const absl::Time end = absl::Now() + absl::Seconds(30);
  absl::Status last;
  while (last.ok() && absl::Now() < end) {
    last = CallWithBytes(channel, kHealth, "");
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_THAT(last, StatusIs(absl::StatusCode::kUnavailable));
}

// While its connection is replaced, a call of a member with a good certificate
// may have to be repeated, for a second at most.
TEST_F(MemberLimitsTest, CallsGoOnAcrossTheAgeOfTheirConnection) {
  GrpcServer::Options options;
  options.longest_connection = absl::Seconds(1);
  Start(options);
  const auto channel = OtherChannel();
  const absl::Time end = absl::Now() + absl::Seconds(4);
  while (absl::Now() < end) {
    absl::Status answer = CallWithBytes(channel, kHealth, "");
    for (int i = 0; i < 20 && absl::IsUnavailable(answer); ++i) {
      absl::SleepFor(absl::Milliseconds(50));
      answer = CallWithBytes(channel, kHealth, "");
    }
    ASSERT_OK(answer);
  }
}

}  // namespace
}  // namespace lockstep::testing
