#include "worker/client/exchange/token_answer.h"

#include "gtest/gtest.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {
namespace {

using Outcome = TokenAnswer::Outcome;

TEST(TokenAnswerTest, TokenHasAllFieldsOfTheAnswer) {
  const std::optional<Token> token = TokenOf({.outcome = Outcome::kToken,
                                              .step = 5,
                                              .slot = 6,
                                              .attempt = 2,
                                              .selected_attempt = 3,
                                              .not_needed = true,
                                              .block = 4});

  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->kind, Token::Kind::kToken);
  EXPECT_EQ(token->step, 5);
  EXPECT_EQ(token->slot, 6);
  EXPECT_EQ(token->attempt, 2);
  EXPECT_EQ(token->selected_attempt, 3);
  EXPECT_TRUE(token->not_needed);
  EXPECT_EQ(token->block, 4);
}

TEST(TokenAnswerTest, OnlyTheEndEndsTraining) {
  EXPECT_TRUE(EndsTraining(Outcome::kFinished));
  for (const Outcome other :
       {Outcome::kToken, Outcome::kRedo, Outcome::kWait, Outcome::kOther}) {
    EXPECT_FALSE(EndsTraining(other));
  }
}

TEST(TokenAnswerTest, RedoNamesTheAttemptToPushFor) {
  const std::optional<Token> token =
      TokenOf({.outcome = Outcome::kRedo, .attempt = 2});

  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->kind, Token::Kind::kRedo);
  EXPECT_EQ(token->attempt, 2);
}

TEST(TokenAnswerTest, EndTellsItsStepAndWhetherTheLastPassWasNeeded) {
  const std::optional<Token> token = TokenOf({.outcome = Outcome::kFinished,
                                              .step = 7,
                                              .attempt = 2,
                                              .not_needed = true});

  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->kind, Token::Kind::kFinished);
  EXPECT_EQ(token->step, 7);
  EXPECT_EQ(token->attempt, 2);
  EXPECT_TRUE(token->not_needed);
}

TEST(TokenAnswerTest, WaitThatHasEndedWithoutATokenIsRepeated) {
  EXPECT_EQ(TokenOf({.outcome = Outcome::kWait}), std::nullopt);
  EXPECT_EQ(TokenOf({.outcome = Outcome::kOther}), std::nullopt);
}

class SettleValuesTest : public ::testing::Test {
 protected:
  SettleValuesTest() { chunks_.Hold(0, 0, {.step = 5, .attempt = 2}); }

  const Plan plan_{.variables = {{"w", {1}, DType::kFloat32, {}}},
                   .parts = {{.variable = 0, .offset = 0, .count = 1}}};
  ParameterMemory memory_ = *ParameterMemory::Make(
      plan_.variables, ParameterMemory::Gradients::kPrivate);
  HeldChunks chunks_{plan_, memory_, 1, sizeof(float)};
};

TEST_F(SettleValuesTest, TokenCommitsTheValuesOfItsAttempt) {
  SettleValues({.kind = Token::Kind::kToken, .step = 5, .attempt = 2}, chunks_);

  EXPECT_EQ(chunks_.held(0, 0).step, 5);
  EXPECT_EQ(chunks_.held(0, 0).attempt, 0);
}

TEST_F(SettleValuesTest, EndOfTrainingCommitsTheValuesOfItsAttempt) {
  SettleValues({.kind = Token::Kind::kFinished, .step = 5, .attempt = 2},
               chunks_);

  EXPECT_EQ(chunks_.held(0, 0).step, 5);
  EXPECT_EQ(chunks_.held(0, 0).attempt, 0);
}

TEST_F(SettleValuesTest, TokenOfAnotherAttemptDropsTheValues) {
  SettleValues({.kind = Token::Kind::kToken, .step = 5, .attempt = 3}, chunks_);

  EXPECT_EQ(chunks_.held(0, 0).step, -1);
}

TEST_F(SettleValuesTest, RedoLeavesTheValuesAsTheyAre) {
  SettleValues({.kind = Token::Kind::kRedo, .attempt = 3}, chunks_);

  EXPECT_EQ(chunks_.held(0, 0).step, 5);
  EXPECT_EQ(chunks_.held(0, 0).attempt, 2);
}

TEST(WatchResultTest, CommitAndEndOfTrainingEndTheStep) {
  for (const bool ended : {false, true}) {
    EXPECT_EQ(WatchResultOf(Outcome::kToken, ended), WatchResult::kStepIsOver);
    EXPECT_EQ(WatchResultOf(Outcome::kFinished, ended),
              WatchResult::kStepIsOver);
  }
}

TEST(WatchResultTest, WaitIsRepeatedWhileThePassGoesOn) {
  EXPECT_EQ(WatchResultOf(Outcome::kWait, /*ended=*/false),
            WatchResult::kAskAgain);
  EXPECT_EQ(WatchResultOf(Outcome::kWait, /*ended=*/true), WatchResult::kEnd);
}

TEST(WatchResultTest, AnswerThatIsNoneOfAWatchEndsIt) {
  EXPECT_EQ(WatchResultOf(Outcome::kRedo, /*ended=*/false), WatchResult::kEnd);
  EXPECT_EQ(WatchResultOf(Outcome::kOther, /*ended=*/false), WatchResult::kEnd);
}

}  // namespace
}  // namespace lockstep::worker
