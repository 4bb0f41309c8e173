// Workers on this host whose gradients lie in memory of their own.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

const TaskId kWorker1{TaskType::kWorker, 1};

class ShardHostSharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    JobConfig job;
    job.replicas_to_aggregate = job.total_num_replicas = 2;
    host_.SetJobId("job");
    ASSERT_OK(host_.FollowChief("job", 3));
    auto shard = host_.Create(job, {{"w", {4}, DType::kFloat32, {}}},
                              {{0, 0, 4, DType::kFloat32}});
    ASSERT_OK(shard);
    shard_ = *std::move(shard);
    ASSERT_OK(shard_->Activate(0, {}));
    auto memory = SharedMemory::Create("test", 16);
    ASSERT_OK(memory);
    memory_ = *std::move(memory);
    auto peer = PeerMemory::Open(memory_->file(), PeerMemory::Require::kSealed);
    ASSERT_OK(peer);
    peer_ = *std::move(peer);
  }

  absl::Status Share(uint64_t incarnation,
                     const std::shared_ptr<Shard>& shard) {
    return host_.ShareGradients("job", kWorker1, incarnation, shard, peer_,
                                {SharedMemory::kHeaderSize});
  }
  bool IsShared(uint64_t incarnation) const {
    return shard_->shared_gradients().Find(1, incarnation, 0, 1).ok();
  }

  const testing::TempDir temp_dir_;
  ShardHost host_{
      {.task_index = 2, .incarnation = 5, .state_dir = temp_dir_.path()}};
  std::shared_ptr<Shard> shard_;
  std::unique_ptr<SharedMemory> memory_;
  std::shared_ptr<const PeerMemory> peer_;
};

TEST_F(ShardHostSharingTest, AWorkersMemoryStaysUntilItIsExpired) {
  EXPECT_OK(Share(7, shard_));
  EXPECT_TRUE(IsShared(7));
  host_.ExpireWorker(1, 7);
  EXPECT_FALSE(IsShared(7));
}

// Its call was admitted before.
TEST_F(ShardHostSharingTest, AWorkerThatIsExpiredMeanwhileLeavesNoMemory) {
  ASSERT_OK(host_.Admit("job", kWorker1, 7));
  host_.ExpireWorker(1, 7);

  EXPECT_THAT(Share(7, shard_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was taken for dead; register again")));
  EXPECT_FALSE(IsShared(7));
  EXPECT_OK(Share(8, shard_));
}

TEST_F(ShardHostSharingTest, MemoryForAShardThatIsGoneIsRefused) {
  EXPECT_THAT(Share(7, nullptr),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("retry")));
  EXPECT_FALSE(IsShared(7));
}

}  // namespace
}  // namespace lockstep::server
