#include "common/rpc/server.h"

#include <sys/resource.h>

#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/integration/common/rpc/reading_service.h"
#include "tests/testing/http2_peer.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

class GrpcServerTest : public ::testing::Test {
 protected:
  void Start(const GrpcServer::Options& options) {
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_}, options);
    ASSERT_OK(server);
    server_ = *std::move(server);
  }
  // Uses its own connection; repeats while earlier connections still count.
  absl::Status AskHealth() const {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (true) {
      absl::Status answer = CallWithBytes(
          MakeChannel(absl::StrCat("127.0.0.1:", server_->port())),
          "/grpc.health.v1.Health/Check", "");
      if (answer.ok() || absl::Now() > deadline) return answer;
      absl::SleepFor(absl::Milliseconds(50));
    }
  }

  ReadingService service_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(GrpcServerTest, ServesAgainOnceConnectionsAreGone) {
  GrpcServer::Options options;
  options.connections = {3, 3};
  Start(options);
  const auto early = MakeChannel(absl::StrCat("127.0.0.1:", server_->port()));
  ASSERT_OK(CallWithBytes(early, "/grpc.health.v1.Health/Check", ""));
  {
    std::vector<RawSocket> idle;
    for (int i = 0; i < 20; ++i) idle.emplace_back(server_->port());
    EXPECT_TRUE(idle.back().IsClosedWithin(60'000));
    EXPECT_OK(CallWithBytes(early, "/grpc.health.v1.Health/Check", ""));
  }

  EXPECT_OK(AskHealth());
}

TEST_F(GrpcServerTest, ConnectionThatSaysNothingIsClosed) {
  Start({});
  const RawSocket silent(server_->port());

  EXPECT_TRUE(silent.IsClosedWithin(60'000));
}

TEST_F(GrpcServerTest, MessagesThatNeverEndAreNotHeldWithoutLimit) {
  GrpcServer::Options options;
  options.largest_message = -1;
  options.memory = 32 * kMebibyte;
  Start(options);
  const size_t before = ResidentBytes();

  bool all_taken = true;
  std::deque<Http2Peer> peers;
  for (int i = 0; i < 2; ++i) peers.emplace_back(server_->port());
  for (Http2Peer& peer : peers) {
    const uint32_t stream = peer.Open(kCalls);
    all_taken = peer.BeginMessage(stream, 1 << 30) &&
                peer.SendBytes(stream, 256 * kMebibyte) && all_taken;
  }

  EXPECT_FALSE(all_taken);
  // Plus the 256 MiB of freed memory that an address sanitizer keeps.
  EXPECT_LT(ResidentBytes(), before + (160 + 256) * kMebibyte);
  EXPECT_OK(AskHealth());
}

TEST_F(GrpcServerTest, MessageBeyondTheLargestIsRefused) {
  GrpcServer::Options options;
  options.largest_message = 1 << 10;
  Start(options);

  EXPECT_THAT(
      CallWithBytes(MakeChannel(absl::StrCat("127.0.0.1:", server_->port())),
                    kCalls, std::string(2 << 10, 'x')),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("larger")));
}

TEST_F(GrpcServerTest, CompressedMessageIsRefusedBeforeItIsExpanded) {
  GrpcServer::Options options;
  options.largest_message = -1;
  Start(options);
  const std::string zeros(64 * kMebibyte, '\0');
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    EXPECT_THAT(
        CallWithBytes(MakeChannel(absl::StrCat("127.0.0.1:", server_->port())),
                      kCalls, zeros, kCallTimeout, algorithm),
        StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("is disabled")));
  }
}

TEST_F(GrpcServerTest, CallsOfAConnectionAreLimited) {
  Start({});
  Http2Peer peer(server_->port());
  for (int i = 0; i < 256; ++i) peer.Open(kCalls);

  const uint32_t one_more = peer.Open(kCalls);
  EXPECT_FALSE(peer.SendBytes(one_more, 16 * kMebibyte));
}

// Nothing else may be sent within a header, an answer to a ping included.
TEST_F(GrpcServerTest, ConnectionWhoseHeaderDoesNotEndIsClosed) {
  Start({});
  Http2Peer peer(server_->port());
  const uint32_t call = peer.BeginHeader(1 << 20);

  EXPECT_TRUE(peer.EndsWithin(call, 30'000));
}

TEST_F(GrpcServerTest, PortThatIsTakenIsRefused) {
  Start({});

  EXPECT_THAT(
      GrpcServer::Start(absl::StrCat("127.0.0.1:", server_->port()), {}),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the port is taken")));
}

}  // namespace
}  // namespace lockstep::testing
