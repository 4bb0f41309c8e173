// Which epochs a server draws and follows.

#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard_host.h"
#include "server/state/file/state_file.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ShardHostEpochTest : public ::testing::Test {
 protected:
  ShardHostEpochTest() {
    job_.replicas_to_aggregate = job_.total_num_replicas = 2;
    host_.SetJobId("job");
  }

  void CreateActive() {
    const auto shard = host_.Create(job_, {{"w", {4}, DType::kFloat32, {}}},
                                    {{0, 0, 4, DType::kFloat32}});
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->Activate(0, {}));
  }
  static StateHeader Header() {
    StateHeader header;
    header.job_id = "job";
    header.task_index = 2;
    return header;
  }
  // As a successor would find it.
  uint64_t EpochInFile() { return (*host_.shard())->state().record().epoch; }

  const testing::TempDir temp_dir_;
  JobConfig job_;
  ShardHost host_{
      {.task_index = 2, .incarnation = 5, .state_dir = temp_dir_.path()}};
};

TEST_F(ShardHostEpochTest, EveryEpochIsLargerThanAnyBefore) {
  EXPECT_THAT(host_.TakeEpoch("job"), IsOkAndHolds(1));
  EXPECT_THAT(host_.TakeEpoch("job"), IsOkAndHolds(2));
  ASSERT_OK(host_.FollowChief("job", 9));

  EXPECT_THAT(host_.TakeEpoch("job"), IsOkAndHolds(10));
  EXPECT_THAT(host_.TakeEpoch("job", /*newer_than=*/3), IsOkAndHolds(11));
  EXPECT_THAT(host_.TakeEpoch("job", /*newer_than=*/20), IsOkAndHolds(21));
}

TEST_F(ShardHostEpochTest, EpochThatNoChiefHasDrawnIsRefusedAndChangesNothing) {
  ASSERT_OK(host_.FollowChief("job", 3, /*chief=*/7));
  CreateActive();
  const auto refused = [](const char* field) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr(field), HasSubstr("ps 2 is in epoch 3")));
  };
  const uint64_t all = ~uint64_t{0};
  const uint64_t far = uint64_t{1} << 33;

  for (uint64_t epoch : {all, all - 1, kLargestEpoch, far}) {
    EXPECT_THAT(host_.TakeEpoch("job", epoch, 8), refused("newer_than"));
    EXPECT_THAT(host_.FollowChief("job", epoch, 8), refused("chief.epoch"));
    EXPECT_OK(host_.CheckChief("job", 3, 7)) << epoch;
    EXPECT_EQ(EpochInFile(), 3);
  }

  EXPECT_THAT(host_.TakeEpoch("job", 3, 8), IsOkAndHolds(4));
  EXPECT_EQ(EpochInFile(), 4);
}

TEST_F(ShardHostEpochTest, EpochThatCannotBeKeptIsNotFollowed) {
  ASSERT_OK(host_.FollowChief("job", 3, /*chief=*/7));
  CreateActive();
  // So that the state refuses older ones.
  ASSERT_OK((*host_.shard())->state().SetEpoch(9));
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("older than epoch 9"));

  EXPECT_THAT(host_.TakeEpoch("job", 3, 8), refused);
  EXPECT_THAT(host_.FollowChief("job", 5, 8), refused);

  EXPECT_OK(host_.CheckChief("job", 3, 7));
  EXPECT_EQ(EpochInFile(), 9);
}

TEST_F(ShardHostEpochTest, StateFileWithAnEpochThatNothingCanFollowIsNamed) {
  {
    ShardHost killed(
        {.task_index = 2, .incarnation = 4, .state_dir = temp_dir_.path()});
    killed.SetJobId("job");
    ASSERT_OK(killed.Create(job_, {{"w", {4}, DType::kFloat32, {}}},
                            {{0, 0, 4, DType::kFloat32}}));
  }
  ASSERT_OK(StateFile::NoteEpoch(temp_dir_.path(), Header(), ~uint64_t{0}));
  host_.SetJobId("job");

  EXPECT_THAT(host_.TakeEpoch("job", 3, 8),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("18446744073709551615"),
                             HasSubstr("remove " + temp_dir_.path()))));
}

}  // namespace
}  // namespace lockstep::server
