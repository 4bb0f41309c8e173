// A shard of a job with shared work.

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1000);

class ShardSharedTest : public ShardFixture {
 protected:
  std::unique_ptr<Shard> CreateActive() {
    options_.job.work = Work::kShared;
    options_.job.micro_batches_per_step = options_.job.replicas_to_aggregate;
    auto shard = Shard::Create(options_);
    EXPECT_OK(shard);
    EXPECT_OK((*shard)->Activate(0, {}));
    return *std::move(shard);
  }
};

TEST_F(ShardSharedTest, AnyWorkerMayComputeAnyNumberOfASharedStep) {
  auto shard = CreateActive();
  EXPECT_FALSE(shard->all_workers_count());
  const int last = options_.job.micro_batches_per_step - 1;
  EXPECT_OK(shard->CheckWorker({TaskType::kWorker, 1}, last));
  EXPECT_THAT(shard->CheckWorker({TaskType::kWorker, 0}, last + 1),
              StatusIs(absl::StatusCode::kInvalidArgument));

  for (int slot : {1, 0}) {
    const Pass pass{0, 1, 0, 2 - slot, slot};
    ASSERT_OK(shard->gate()->Announce(pass));
    EXPECT_THAT(shard->engine().AddPush(1, {pass, 1, 0, Gradients(1)})->pushes,
                SizeIs(1));
  }

  ASSERT_OK(shard->gate()->Commit(1, 1));
  ASSERT_OK(shard->engine().Commit(1, 1));
  const auto values = shard->Pull(0, 1, 1);
  ASSERT_OK(values);
  EXPECT_THAT(FromBytes<float>(values->parts[0].bytes), Each(0.5f));
}

// A worker that waits for a token after a pass has made its number done, but
// only if its gradient is here: see Gate.
TEST_F(ShardSharedTest, NumberWithoutItsGradientIsHandedOutAgain) {
  auto shard = CreateActive();
  const auto slot_after = [&](const Pass& pass) {
    const auto answers = shard->AwaitToken({1, pass, /*attempt=*/1}, kNow);
    EXPECT_OK(answers);
    EXPECT_THAT(*answers, SizeIs(1));
    return answers->front().slot;
  };
  const Pass first{0, 1, 0, /*number=*/1, 0};
  ASSERT_OK(shard->gate()->Announce(first));
  EXPECT_EQ(slot_after(first), 0);

  const Pass again{0, 1, 0, /*number=*/2, 0};
  ASSERT_OK(shard->gate()->Announce(again));
  ASSERT_OK(shard->engine().AddPush(1, {again, 1, 0, Gradients(1)}));
  EXPECT_EQ(slot_after(again), 1);
}

}  // namespace
}  // namespace lockstep::server
