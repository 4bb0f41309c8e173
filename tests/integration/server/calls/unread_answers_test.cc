// What a caller that does not read its answers can hold of a server.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/wire/wire_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/http2_peer.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";
constexpr int kRowWidth = 1024;

// A server of a table of four rows of 4 KiB.
class UnreadAnswersTest : public ::testing::Test {
 protected:
  UnreadAnswersTest() {
    shard_.host().SetJobId(kJobId);
    v1::TakeEpochRequest take;
    *take.mutable_chief() = shard_.Chief();
    const auto epoch =
        Call(shard_.control(), &v1::ShardControlService::Stub::TakeEpoch, take);
    EXPECT_OK(epoch);
    shard_.set_epoch(epoch->epoch());
    v1::CreateShardRequest create = shard_.CreateRequest();
    create.set_discard(true);
    create.clear_variables();
    create.clear_parts();
    *create.add_variables() = ToProto(
        VariableSpec{"t", {4, kRowWidth}, DType::kFloat32, {}, RowCut::kDiv});
    *create.add_parts() = ToProto(Part{0, 0, 4 * kRowWidth, 0, 0});
    EXPECT_OK(Call(shard_.control(),
                   &v1::ShardControlService::Stub::CreateShard, create));
    v1::ActivateRequest activate;
    *activate.mutable_chief() = shard_.Chief();
    EXPECT_OK(Call(shard_.control(), &v1::ShardControlService::Stub::Activate,
                   activate));
  }

  int port() const {
    return std::stoi(
        std::vector<std::string>(absl::StrSplit(shard_.address(), ':')).back());
  }
  // The same row again and again.
  static v1::PullRequest Rows(int count) {
    v1::PullRequest request = ServedShard::PullRequest(-1);
    request.mutable_parts()->set_num_parts(1);
    for (int i = 0; i < count; ++i) request.mutable_rows()->add_ids(0);
    return request;
  }

  ServedShard shard_;
};

TEST_F(UnreadAnswersTest, RowsOfAConnectionAreBounded) {
  const std::string half = Rows(8192).SerializeAsString();  // 32 MiB
  {
    Http2Peer peer(port());
    const uint32_t first = peer.Open(kPull);
    ASSERT_TRUE(peer.SendMessage(first, half));
    const uint32_t second = peer.Open(kPull);
    ASSERT_TRUE(peer.SendMessage(second, half));
    EXPECT_FALSE(peer.EndsWithin(second, 1'000));  // its answer is unread
    const uint32_t third = peer.Open(kPull);
    ASSERT_TRUE(peer.SendMessage(third, half));
    EXPECT_TRUE(peer.EndsWithin(third, 60'000));  // refused

    EXPECT_OK(Call(shard_.parameters(), &v1::ParameterService::Stub::Pull,
                   Rows(8192)));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(Call(shard_.parameters(), &v1::ParameterService::Stub::Pull,
                   Rows(8192)));
  }
}

}  // namespace
}  // namespace lockstep::testing
