#include "worker/client/exchange/pass_sends.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Id = ReadyChunks::Id;

// Server 0 has variables 0 to 2, server 1 variable 3, each in a chunk.
Plan MakePlan() {
  Plan plan;
  for (int variable = 0; variable < 4; ++variable) {
    plan.variables.push_back({"v", {1}, DType::kFloat32, {}});
    plan.parts.push_back({.variable = variable,
                          .offset = 0,
                          .count = 1,
                          .server = variable / 3,
                          .index = variable % 3});
  }
  return plan;
}

class PassSendsTest : public ::testing::Test {
 protected:
  const Plan plan_ = MakePlan();
  ParameterMemory memory_ = *ParameterMemory::Make(
      plan_.variables, ParameterMemory::Gradients::kPrivate);
  HeldChunks chunks_{plan_, memory_, 2, sizeof(float)};
  PassSends sends_{chunks_};
  const PushId push_{{.step = 4, .number = 9}, 1};
};

TEST_F(PassSendsTest, ChunksThatAreReadyWaitForThePush) {
  sends_.BeginPass(StepClient::PassKind::kSomeCount);

  EXPECT_THAT(sends_.MarkReady(2), IsEmpty());
  EXPECT_THAT(sends_.MarkReady(3), IsEmpty());

  EXPECT_THAT(sends_.BeginPush(push_),
              ElementsAre(ElementsAre(2), ElementsAre(0)));
  EXPECT_EQ(sends_.push(), push_);
  EXPECT_THAT(sends_.MarkReady(1), ElementsAre(Id{0, 1}));
  EXPECT_THAT(sends_.MarkReady(1), IsEmpty());
}

TEST_F(PassSendsTest, RestOfAPushThatHasBegunIsSentOnceAfterTheTokenCall) {
  sends_.BeginPass(StepClient::PassKind::kSomeCount);
  sends_.BeginPush(push_);
  sends_.MarkReady(1);

  const PassSends::Rest rest = sends_.RestOf(push_);
  EXPECT_TRUE(rest.sends_token_call);
  EXPECT_FALSE(rest.begins_push);
  EXPECT_TRUE(rest.sends_chunks);
  EXPECT_THAT(sends_.MarkRest(), ElementsAre(Id{0, 0}, Id{0, 2}, Id{1, 0}));

  const PassSends::Rest again = sends_.RestOf(push_);
  EXPECT_FALSE(again.sends_token_call);
  EXPECT_FALSE(again.begins_push);
  EXPECT_FALSE(again.sends_chunks);
}

TEST_F(PassSendsTest, AnotherAttemptIsAnotherPushThatSendsAllChunksAgain) {
  sends_.BeginPass(StepClient::PassKind::kSomeCount);
  sends_.BeginPush(push_);
  sends_.MarkRest();
  sends_.EndPush();

  const PushId redone{push_.pass, /*attempt=*/2};
  const PassSends::Rest rest = sends_.RestOf(redone);
  EXPECT_TRUE(rest.sends_token_call);
  EXPECT_TRUE(rest.begins_push);
  EXPECT_TRUE(rest.sends_chunks);

  EXPECT_THAT(sends_.BeginPush(redone),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0)));
  EXPECT_TRUE(sends_.RestOf(redone).sends_chunks);
  EXPECT_THAT(sends_.MarkRest(), IsEmpty());
  EXPECT_FALSE(sends_.RestOf(redone).sends_chunks);
}

TEST_F(PassSendsTest, PushThatHasEndedMayBeginAgain) {
  sends_.BeginPass(StepClient::PassKind::kSomeCount);
  sends_.BeginPush(push_);
  sends_.MarkRest();

  sends_.EndPush();

  EXPECT_EQ(sends_.push(), std::nullopt);
  EXPECT_TRUE(sends_.RestOf(push_).begins_push);
}

// The call for the token says there that all servers have answered the push.
TEST_F(PassSendsTest, SharedWorkSendsNoEarlyTokenCall) {
  sends_.BeginPass(StepClient::PassKind::kShared);
  EXPECT_FALSE(sends_.RestOf(push_).sends_token_call);

  sends_.BeginPass(StepClient::PassKind::kAllCount);
  EXPECT_TRUE(sends_.RestOf(push_).sends_token_call);
}

TEST_F(PassSendsTest, PushOfCompatibleModeSendsNoEarlyTokenCall) {
  const PassSends::Rest rest = sends_.RestOf({push_.pass, /*attempt=*/0});

  EXPECT_FALSE(rest.sends_token_call);
  EXPECT_TRUE(rest.begins_push);
  EXPECT_TRUE(rest.sends_chunks);
}

// Chunk 2 of server 0 comes behind the others.
TEST_F(PassSendsTest, ThirdsAreKeptBackIfEveryWorkerCounts) {
  sends_.BeginPass(StepClient::PassKind::kAllCount);
  sends_.BeginPush(push_);

  EXPECT_THAT(sends_.MarkReady(2), IsEmpty());
  EXPECT_THAT(sends_.MarkReady(1), ElementsAre(Id{0, 1}));
  EXPECT_THAT(sends_.MarkReady(0), ElementsAre(Id{0, 0}, Id{0, 2}));
}

TEST_F(PassSendsTest, LaterAttemptKeepsNothingBack) {
  sends_.BeginPass(StepClient::PassKind::kAllCount);
  sends_.MarkReady(2);
  sends_.MarkReady(1);

  EXPECT_THAT(sends_.BeginPush({push_.pass, /*attempt=*/2}),
              ElementsAre(ElementsAre(2, 1), IsEmpty()));
}

TEST_F(PassSendsTest, AbsentMarksAreOfOnePass) {
  sends_.BeginPass(StepClient::PassKind::kSomeCount);
  sends_.MarkAbsent(1);
  EXPECT_THAT(sends_.absent(), ElementsAre(0, 1, 0, 0));

  sends_.BeginPass(StepClient::PassKind::kSomeCount);
  EXPECT_THAT(sends_.absent(), ElementsAre(0, 0, 0, 0));
}

TEST_F(PassSendsTest, ChunksOfSeveralVariables) {
  EXPECT_THAT(sends_.ChunksOf(2, 2), ElementsAre(Id{0, 2}, Id{1, 0}));
  EXPECT_THAT(sends_.ChunksOf(1, 0), IsEmpty());
}

TEST_F(PassSendsTest, NewChunksReplaceTheOthers) {
  const HeldChunks large(plan_, memory_, 2, 3 * sizeof(float));

  sends_.OnNewChunks(large);

  EXPECT_THAT(sends_.ChunksOf(0, 2), ElementsAre(Id{0, 0}, Id{0, 0}));
}

}  // namespace
}  // namespace lockstep::worker
