// When a chief finds a shard that it cannot use as it is.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

// A server of a job of one worker.
class ShardHostReopenTest : public ::testing::Test {
 protected:
  ShardHostReopenTest() {
    job_.replicas_to_aggregate = job_.total_num_replicas = 1;
    job_.learning_rate.base = 0.5;
    host_ = MakeHost(temp_dir_.path());
  }

  static std::unique_ptr<ShardHost> MakeHost(const std::string& directory) {
    auto host = std::make_unique<ShardHost>(
        ShardHost::Options{.task_index = 2,
                           .incarnation = 5,
                           .state_dir = directory,
                           .longest_release = absl::Milliseconds(50)});
    host->SetJobId("job");
    EXPECT_OK(host->FollowChief("job", 1));
    return host;
  }
  absl::StatusOr<std::shared_ptr<Shard>> Create() {
    return host_->Create(job_, variables_, parts_);
  }
  absl::StatusOr<std::shared_ptr<Shard>> Discard(
      const ShardHost::LetGo& let_go = [] {}) {
    return host_->Create(job_, variables_, parts_, ShardHost::Keep::kNothing,
                         let_go);
  }
  void CreateActive() {
    const auto shard = Create();
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->Activate(0, {}));
  }
  static void Push(Shard& shard, int64_t step) {
    lockstep::server::Push push{{0, 1, step, step + 1, 0}, 1, 0, {}};
    push.gradients = {GradientOf(std::vector<float>(4, 1))};
    ASSERT_OK(shard.engine().AddPush(/*ticket=*/1, std::move(push)));
  }
  static void Step(Shard& shard, int64_t step) {
    ASSERT_NO_FATAL_FAILURE(Push(shard, step));
    ASSERT_OK(shard.engine().Commit(step + 1, 1));
  }
  static std::vector<float> Values(Shard& shard) {
    const auto values = shard.Pull(0, 1, -1);
    EXPECT_OK(values);
    return FromBytes<float>(values->parts[0].bytes);
  }

  const testing::TempDir temp_dir_;
  JobConfig job_;
  std::vector<VariableSpec> variables_ = {
      {"w", {4}, DType::kFloat32, {Initializer::Kind::kConstant, 1, 0}}};
  std::vector<PartSpec> parts_ = {{0, 0, 4, DType::kFloat32}};
  std::unique_ptr<ShardHost> host_;
};

TEST_F(ShardHostReopenTest, EditedRulesTakeEffectAndNoStepIsLost) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  ASSERT_NO_FATAL_FAILURE(Step(**host_->shard(), 0));
  ASSERT_NO_FATAL_FAILURE(Push(**host_->shard(), 1));  // step 2 is prepared
  host_->ExpireWorker(1, 7);
  ASSERT_OK(host_->FollowChief("job", 2));
  job_.learning_rate.base = 0.25;

  const auto shard = Create();

  ASSERT_OK(shard);
  // As after a kill: the chief sees that the gradients are lost.
  EXPECT_FALSE((*shard)->active());
  EXPECT_EQ((*shard)->GetReport().committed_step, 1);
  EXPECT_EQ((*shard)->GetReport().prepared_step, 2);
  EXPECT_EQ((*shard)->state().record().epoch, 2u);
  ASSERT_OK((*shard)->Activate(1, {}));
  EXPECT_THAT(Values(**shard), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(host_->Admit("job", {TaskType::kWorker, 1}, 7),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_NO_FATAL_FAILURE(Step(**shard, 1));
  EXPECT_THAT(Values(**shard), ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(Create(), IsOkAndHolds(*shard));
}

TEST_F(ShardHostReopenTest, StateIsOpenedAgainWhenTheLastCallHasLetItGo) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  std::shared_ptr<Shard> call = *host_->shard();
  job_.learning_rate.base = 0.25;

  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("in use by calls of this process")));

  call = nullptr;
  const auto shard = Create();
  ASSERT_OK(shard);
  EXPECT_EQ((*shard)->GetReport().committed_step, 0);
}

// There may be no room for two states.
TEST_F(ShardHostReopenTest, ShardIsMadeOnceTheMemoryOfTheDiscardedOneIsFree) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  LentBytes lent = (*host_->shard())->Pull(0, 1, -1)->parts[0];
  ASSERT_OK(host_->FollowChief("job", 2));

  EXPECT_THAT(Discard(), StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr("calls of this process")));
  EXPECT_THAT(Discard(), StatusIs(absl::StatusCode::kUnavailable));

  lent = {};
  const auto shard = Discard();
  ASSERT_OK(shard);
  EXPECT_EQ((*shard)->GetReport().committed_step, -1);
}

// A call that was filed before it was admitted is thus ended or refused.
TEST_F(ShardHostReopenTest, CallsMustLetGoOnceTheShardIsNotHandedOut) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  LentBytes lent = (*host_->shard())->Pull(0, 1, -1)->parts[0];
  ASSERT_OK(host_->FollowChief("job", 2));
  int times = 0;

  EXPECT_OK(Discard([&] {
    EXPECT_THAT(host_->shard(), StatusIs(absl::StatusCode::kUnavailable));
    // The second time stands for a call that has filed what it holds late.
    if (++times > 1) lent = {};
  }));

  EXPECT_EQ(times, 2);
}

TEST_F(ShardHostReopenTest, NoCallMustLetGoOfAShardThatStays) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());

  EXPECT_THAT(host_->Create(job_, variables_, parts_, ShardHost::Keep::kState,
                            [] { ADD_FAILURE() << "the shard stays"; }),
              IsOkAndHolds(*host_->shard()));
}

TEST_F(ShardHostReopenTest, WaitForTheMemoryEndsWithTheProcess) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  const std::shared_ptr<Shard> call = *host_->shard();
  job_.learning_rate.base = 0.25;
  host_->StopCreating();

  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ShardHostReopenTest, EditedRulesAreRefusedWhereStepsWouldBeLost) {
  host_ = MakeHost(/*directory=*/"");
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  job_.learning_rate.base = 0.25;

  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("learning_rate: 0.5 -> 0.25"),
                                       HasSubstr("restart all servers"))));

  job_.learning_rate.base = 0.5;
  EXPECT_THAT(Create(), IsOkAndHolds(*host_->shard()));
}

TEST_F(ShardHostReopenTest, HalfRestoredStateIsNoneForTheNextRound) {
  // Key 7 is only in the checkpoint whose restoring has failed.
  variables_ = {{"t",
                 {4, 2},
                 DType::kFloat32,
                 {Initializer::Kind::kUniform, -1, 1},
                 RowCut::kKey}};
  parts_ = {{0, 0, 8, DType::kFloat32, 2, 1, true}};
  const std::vector<float> row = {3, 4};
  {
    const auto shard = Create();
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->state().WriteRows(0, 0, {7}, BytesOf(row)));
    EXPECT_THAT(Create(), IsOkAndHolds(*shard));  // a repeated call
  }
  ASSERT_OK(host_->FollowChief("job", 2));

  const auto shard = Create();
  ASSERT_OK(shard);
  ASSERT_OK((*shard)->state().WriteRows(0, 0, {8}, BytesOf(row)));
  EXPECT_THAT(Create(), IsOkAndHolds(*shard));  // one that was delayed
  ASSERT_OK((*shard)->Activate(3, {}));

  std::vector<std::byte> bytes(8);
  ASSERT_OK((*shard)->PullRows(0, {8}, -1, absl::MakeSpan(bytes)));
  EXPECT_EQ(FromBytes<float>(bytes), row);
  ASSERT_OK((*shard)->PullRows(0, {7}, -1, absl::MakeSpan(bytes)));
  EXPECT_THAT(FromBytes<float>(bytes), Ne(row));
}

TEST_F(ShardHostReopenTest, UnwrittenStateIsNotFilledAgain) {
  const auto shard = Create();
  ASSERT_OK(shard);
  ASSERT_OK(host_->FollowChief("job", 2));

  EXPECT_THAT(Create(), IsOkAndHolds(*shard));

  // A copy of that call which arrives when the chief has begun to restore it.
  const std::vector<float> value(4, 7);
  ASSERT_OK((*shard)->state().Write(0, 0, 0, BytesOf(value)));
  EXPECT_THAT(Create(), IsOkAndHolds(*shard));
}

TEST_F(ShardHostReopenTest, NextJobDoesNotGetTheVariablesOfTheOneBefore) {
  CreateActive();
  const auto refused = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      AllOf(HasSubstr("ps 2 holds the variables of job \"job\"; restart it"),
            HasSubstr("\"next\"")));

  host_->SetJobId("next");

  EXPECT_THAT(host_->TakeEpoch("next"), refused);
  EXPECT_THAT(host_->FollowChief("next", 2), refused);
  EXPECT_THAT(host_->CheckChief("next", 1), refused);
  EXPECT_THAT(host_->Admit("next", {TaskType::kWorker, 0}, 1), refused);

  host_->SetJobId("job");
  EXPECT_THAT(host_->TakeEpoch("job"), IsOkAndHolds(2u));
}

}  // namespace
}  // namespace lockstep::server
