#include "worker/client/exchange/early_call.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

const PushId kPush{{.step = 4, .number = 9}, 1};

TEST(EarlyCallTest, WaitAfterThePushGetsTheCallOnce) {
  EarlyCall<int> early;
  const auto call = std::make_shared<int>(7);
  early.Keep(kPush, call);

  EXPECT_EQ(early.Find(kPush), call.get());
  EXPECT_EQ(early.Find({kPush.pass, /*attempt=*/2}), nullptr);
  EXPECT_EQ(early.Take(kPush), call);
  EXPECT_EQ(early.Find(kPush), nullptr);
  EXPECT_EQ(early.Take(kPush), nullptr);
}

TEST(EarlyCallTest, WaitWithoutAnEarlyCallGetsNone) {
  EarlyCall<int> early;

  EXPECT_EQ(early.Take(kPush), nullptr);
  EXPECT_EQ(early.Take({}), nullptr);
}

TEST(EarlyCallTest, WaitAfterAnotherPushDropsTheCall) {
  EarlyCall<int> early;
  early.Keep(kPush, std::make_shared<int>(7));

  EXPECT_EQ(early.Take({kPush.pass, /*attempt=*/2}), nullptr);
  EXPECT_EQ(early.Take(kPush), nullptr);
}

TEST(EarlyCallTest, CallAfterANewerPushReplacesTheOther) {
  EarlyCall<int> early;
  early.Keep(kPush, std::make_shared<int>(7));
  const PushId redone{kPush.pass, /*attempt=*/2};
  const auto call = std::make_shared<int>(8);

  early.Keep(redone, call);

  EXPECT_EQ(early.Take(redone), call);
}

}  // namespace
}  // namespace lockstep::worker
