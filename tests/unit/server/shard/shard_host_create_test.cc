// What a server does while its shard is made.

#include <chrono>
#include <cstdint>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

const TaskId kWorker1{TaskType::kWorker, 1};

class ShardHostCreateTest : public ::testing::Test {
 protected:
  ShardHostCreateTest() {
    job_.replicas_to_aggregate = job_.total_num_replicas = 2;
    host_.SetJobId("job");
  }

  const testing::TempDir temp_dir_;
  JobConfig job_;
  ShardHost host_{
      {.task_index = 2, .incarnation = 5, .state_dir = temp_dir_.path()}};
};

TEST_F(ShardHostCreateTest, AllElseIsServedWhileAShardIsMade) {
  // So many whose values take long that it is never done in the time of this
  // test; not more, since other programs need memory, too.
  constexpr int64_t kElements = int64_t{1} << 27;
  ShardHost host({.task_index = 2, .incarnation = 5, .state_dir = ""});
  host.SetJobId("job");
  ASSERT_OK(host.FollowChief("job", 3, /*chief=*/7));
  auto made = std::async(std::launch::async, [&] {
    return host
        .Create(job_,
                {{"w",
                  {kElements},
                  DType::kFloat32,
                  {Initializer::Kind::kTruncatedNormal, 0, 1}}},
                {{0, 0, kElements, DType::kFloat32}})
        .status();
  });
  while (
      made.wait_for(std::chrono::seconds(0)) == std::future_status::timeout &&
      (host.fill_progress() == nullptr || host.fill_progress()->done() == 0)) {
    std::this_thread::yield();
  }

  EXPECT_THAT(host.shard(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(host.Admit("job", kWorker1, 1),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(host.CheckChief("job", 3, 7));
  EXPECT_THAT(host.TakeEpoch("job", 3, 7), IsOkAndHolds(4));
  host.ExpireWorker(1, 4);
  host.SetJobId("job");
  EXPECT_LT(host.fill_progress()->done(), host.fill_progress()->total());

  host.StopCreating();
  EXPECT_THAT(made.get(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ShardHostCreateTest, EpochThatIsTakenWhileAShardIsMadeIsKept) {
  constexpr int64_t kElements = int64_t{32} << 20;
  ASSERT_OK(host_.FollowChief("job", 3, /*chief=*/7));
  auto made = std::async(std::launch::async, [&] {
    return host_.Create(job_, {{"w", {kElements}, DType::kFloat32, {}}},
                        {{0, 0, kElements, DType::kFloat32}});
  });
  while (host_.fill_progress() == nullptr) std::this_thread::yield();

  EXPECT_THAT(host_.TakeEpoch("job", 3, 8), IsOkAndHolds(4));

  const auto shard = made.get();
  ASSERT_OK(shard);
  EXPECT_EQ((*shard)->state().record().epoch, 4u);
}

}  // namespace
}  // namespace lockstep::server
