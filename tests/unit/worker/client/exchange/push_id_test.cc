#include "worker/client/exchange/push_id.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(PushIdTest, PushBringsTheValuesOfTheNextStepInItsAttempt) {
  const PushId push{{.step = 4, .number = 9}, 2};

  EXPECT_TRUE(push.BringsValues());
  EXPECT_EQ(push.Values().step, 5);
  EXPECT_EQ(push.Values().attempt, 2);
}

TEST(PushIdTest, PushOfCompatibleModeBringsNoValues) {
  EXPECT_FALSE((PushId{{.step = 4, .number = 9}, 0}).BringsValues());
}

TEST(PushIdTest, AnotherPassOrAttemptIsAnotherPush) {
  const PushId push{{.step = 4, .number = 9}, 2};

  EXPECT_EQ(push, (PushId{{.step = 4, .number = 9}, 2}));
  EXPECT_NE(push, (PushId{{.step = 4, .number = 9}, 3}));
  EXPECT_NE(push, (PushId{{.step = 4, .number = 10}, 2}));
  EXPECT_NE(push, (PushId{{.step = 4, .number = 9, .slot = 1}, 2}));
}

}  // namespace
}  // namespace lockstep::worker
