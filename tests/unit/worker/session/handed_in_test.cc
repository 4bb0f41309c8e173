#include "worker/session/handed_in.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(HandedInTest, LastVariablesGradientIsSentFirst) {
  HandedIn step;
  step.Begin(3);
  EXPECT_TRUE(step.empty());
  step.Add(1, /*absent=*/true);
  EXPECT_FALSE(step.NextToSend().has_value());
  step.Add(2, /*absent=*/false);
  auto next = step.NextToSend();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->variable, 2U);
  EXPECT_FALSE(next->absent);
  next = step.NextToSend();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->variable, 1U);
  EXPECT_TRUE(next->absent);
  EXPECT_FALSE(step.NextToSend().has_value());
  EXPECT_TRUE(step.has(1));
  EXPECT_FALSE(step.has(0));
  EXPECT_FALSE(step.has(3));
  EXPECT_FALSE(step.empty());
}

TEST(HandedInTest, StepBeginsWithNothing) {
  HandedIn step;
  step.Begin(2);
  step.MarkTaken(1);
  step.Add(1, /*absent=*/false);
  EXPECT_TRUE(step.is_taken(1));
  step.Begin(2);
  EXPECT_FALSE(step.is_taken(1));
  EXPECT_FALSE(step.is_taken(2));
  EXPECT_FALSE(step.has(1));
  EXPECT_TRUE(step.empty());
  EXPECT_FALSE(step.NextToSend().has_value());
}

}  // namespace
}  // namespace lockstep::worker
