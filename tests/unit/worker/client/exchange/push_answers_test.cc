#include "worker/client/exchange/push_answers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Id = ReadyChunks::Id;
using Values = PushAnswers::Values;

// Server 0 has two chunks, server 1 one.
Plan MakePlan() {
  Plan plan;
  plan.variables = {{"w", {3}, DType::kFloat32, {}}};
  plan.parts = {{.variable = 0, .offset = 0, .count = 1, .server = 0},
                {.variable = 0, .offset = 1, .count = 1, .index = 1},
                {.variable = 0, .offset = 2, .count = 1, .server = 1}};
  return plan;
}

class PushAnswersTest : public ::testing::Test {
 protected:
  void Bring(const Id& chunk, const HeldChunks::Held& values) {
    chunks_.Hold(chunk.server, chunk.chunk, values);
    answers_.MarkThrough(chunk);
  }

  const Plan plan_ = MakePlan();
  ParameterMemory memory_ = *ParameterMemory::Make(
      plan_.variables, ParameterMemory::Gradients::kPrivate);
  HeldChunks chunks_{plan_, memory_, 2, sizeof(float)};
  PushAnswers answers_{{{.step = 4, .number = 9}, 2}, 2};
};

TEST_F(PushAnswersTest, OutcomesAreCountedByKind) {
  answers_.Count(PushOutcome::kAccepted);
  answers_.Count(PushOutcome::kAccepted);
  answers_.Count(PushOutcome::kStale);
  answers_.Count(PushOutcome::kDuplicate);
  answers_.Count(PushOutcome::kSuperseded);

  EXPECT_EQ(answers_.counts().accepted, 2);
  EXPECT_EQ(answers_.counts().stale, 1);
  EXPECT_EQ(answers_.counts().duplicate, 1);
  EXPECT_EQ(answers_.counts().superseded, 1);
}

TEST_F(PushAnswersTest, ValuesAreAwaitedUntilEveryChunkIsThrough) {
  std::vector<Id> chunks = {{0, 0}, {0, 1}, {1, 0}};
  EXPECT_EQ(answers_.ValuesOf(chunks, chunks_), Values::kAwaited);

  Bring({1, 0}, answers_.push().Values());
  Bring({0, 1}, answers_.push().Values());
  EXPECT_EQ(answers_.ValuesOf(chunks, chunks_), Values::kAwaited);
  EXPECT_THAT(chunks, ElementsAre(Id{0, 0}));

  Bring({0, 0}, answers_.push().Values());
  EXPECT_EQ(answers_.ValuesOf(chunks, chunks_), Values::kHeld);
  EXPECT_THAT(chunks, IsEmpty());
}

// Values of a chunk that has no answer yet may be half written.
TEST_F(PushAnswersTest, HeldValuesDoNotCountBeforeTheAnswer) {
  chunks_.Hold(0, 0, answers_.push().Values());
  std::vector<Id> chunks = {{0, 0}};

  EXPECT_EQ(answers_.ValuesOf(chunks, chunks_), Values::kAwaited);
}

TEST_F(PushAnswersTest, AnswerWithoutValuesLacksThem) {
  answers_.MarkThrough({0, 0});
  std::vector<Id> chunks = {{0, 0}};

  EXPECT_EQ(answers_.ValuesOf(chunks, chunks_), Values::kLacking);
}

TEST_F(PushAnswersTest, ValuesOfAnotherStepOrAttemptDoNotCount) {
  Bring({0, 0}, {.step = 5, .attempt = 1});
  Bring({0, 1}, {.step = 4, .attempt = 2});
  std::vector<Id> other_attempt = {{0, 0}};
  std::vector<Id> other_step = {{0, 1}};

  EXPECT_EQ(answers_.ValuesOf(other_attempt, chunks_), Values::kLacking);
  EXPECT_EQ(answers_.ValuesOf(other_step, chunks_), Values::kLacking);
}

TEST_F(PushAnswersTest, NoChunksNeedNoAnswers) {
  std::vector<Id> none;

  EXPECT_EQ(answers_.ValuesOf(none, chunks_), Values::kHeld);
}

}  // namespace
}  // namespace lockstep::worker
