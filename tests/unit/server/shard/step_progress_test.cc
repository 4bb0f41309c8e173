#include "server/shard/step_progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/chief_commands.h"
#include "server/shard/lost_news.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const ChiefCommands::Chief kChief{"job", /*epoch=*/3};

class StepProgressTest : public ShardFixture {
 protected:
  void Open(int server) {
    host_ = std::make_unique<ShardHost>(ShardHost::Options{
        .task_index = server, .incarnation = 1, .state_dir = temp_dir_.path()});
    host_->SetJobId("job");
    ASSERT_OK(host_->FollowChief("job", kChief.epoch));
    ASSERT_OK(host_->Create(options_.job, options_.variables, options_.parts));
    ASSERT_OK(ChiefCommands(*host_).Activate(kChief, {}));
  }
  Shard& shard() { return **host_->shard(); }
  // Both wait for a token, which makes them members where both count.
  void Join() {
    for (int worker : {0, 1}) {
      ASSERT_OK(shard().gate()->Wait(worker, {worker, 1, -1, 0, 0}, 0,
                                     absl::UnixEpoch()));
    }
  }
  void PushFirst(int worker, size_t parts) {
    std::vector<PartGradient> gradients = Gradients(2.0F);
    gradients.resize(parts);
    ASSERT_OK(shard().engine().AddPush(
        /*ticket=*/worker + 1,
        {{worker, 1, 0, 1, 0}, 1, 0, std::move(gradients)}));
  }

  std::unique_ptr<ShardHost> host_;
};

TEST_F(StepProgressTest, MembersHavePushedAllIfEveryWorkerCounts) {
  Open(0);
  Join();
  PushFirst(1, kParts - 1);

  StepProgress progress = ProgressOf(shard());
  EXPECT_EQ(progress.arrivals.attempt, 1);
  EXPECT_EQ(progress.arrivals.open_parts, kParts);
  EXPECT_THAT(progress.arrivals.parts, ElementsAre(Pair(1, kParts - 1)));
  EXPECT_EQ(progress.waits_for, shard().engine().WaitsFor());
  EXPECT_THAT(progress.members, IsEmpty());

  PushFirst(0, kParts);
  progress = ProgressOf(shard());
  EXPECT_EQ(progress.arrivals.open_parts, 1);
  EXPECT_THAT(progress.members, ElementsAre(0));
}

TEST_F(StepProgressTest, MembersAreThoseOfTheSetWhereThereAreBackups) {
  options_.job.replicas_to_aggregate = 1;
  Open(0);
  ASSERT_OK(shard().gate()->Announce({1, 1, 0, 1, 0}));

  EXPECT_THAT(ProgressOf(shard()).members, ElementsAre(1));
}

TEST_F(StepProgressTest, AnswerToATakeTellsTheSetBeforeTheCommit) {
  Open(0);
  Join();

  EXPECT_THAT(MembersAfterTake(shard(), /*committed_step=*/0),
              ElementsAre(0, 1));
  EXPECT_THAT(MembersAfterTake(shard(), /*committed_step=*/1), IsEmpty());
}

TEST_F(StepProgressTest, ServerWithoutAGateKnowsNoMembers) {
  Open(1);

  EXPECT_THAT(ProgressOf(shard()).members, IsEmpty());
  EXPECT_THAT(MembersAfterTake(shard(), /*committed_step=*/0), IsEmpty());
}

TEST_F(StepProgressTest, LostWorkersAreNewsIfTheyAreMembers) {
  options_.job.replicas_to_aggregate = 1;
  Open(0);
  ASSERT_OK(shard().gate()->Announce({1, 1, 0, 1, 0}));
  LostNews news;

  EXPECT_FALSE(news.TakeNews(shard(), {0}));
  EXPECT_TRUE(news.TakeNews(shard(), {0, 1}));
  EXPECT_FALSE(news.TakeNews(shard(), {0, 1}));
}

TEST_F(StepProgressTest, LostWorkersAreNewsWhereMembersAreNotKnown) {
  Open(1);
  LostNews news;

  EXPECT_TRUE(news.TakeNews(shard(), {0}));
}

}  // namespace
}  // namespace lockstep::server
