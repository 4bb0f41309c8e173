#include "server/step/postponed_calls.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

const absl::Time kNow = absl::FromUnixSeconds(1000);

// Step 1 is prepared on a server that is not ps task 0.
class PostponedCallsTest : public ::testing::Test {
 protected:
  PostponedCallsTest() {
    EXPECT_OK(engine_.AddPush(1, PushOf({0, 1, 0, 1, 0}, 1, 0, 1, 1.0f)));
  }

  PostponedCalls::GoOn Note() {
    return [this](const absl::Status& status) { went_on_.push_back(status); };
  }

  FakePartUpdater updater_{1};
  StrictEngine engine_{{}, updater_};
  PostponedCalls calls_;
  std::vector<absl::Status> went_on_;
};

TEST_F(PostponedCallsTest, OnlyThePreparedStepIsWaitedFor) {
  for (const int64_t step : {-1, 0, 2}) {
    EXPECT_FALSE(calls_.Add(engine_, step, kNow, Note())) << step;
  }
  EXPECT_TRUE(calls_.Add(engine_, 1, kNow, Note()));
  EXPECT_THAT(went_on_, IsEmpty());
}

TEST_F(PostponedCallsTest, CallGoesOnOnceWhenTheStepIsCommitted) {
  ASSERT_TRUE(calls_.Add(engine_, 1, kNow, Note()));
  calls_.Resume(engine_);
  EXPECT_THAT(went_on_, IsEmpty());

  engine_.LearnCommitted(1);
  calls_.Resume(engine_);
  calls_.Resume(engine_);

  EXPECT_THAT(went_on_, ElementsAre(absl::OkStatus()));
  EXPECT_FALSE(calls_.Add(engine_, 1, kNow, Note()));
}

TEST_F(PostponedCallsTest, CallGoesOnWhenItsAttemptIsGivenUp) {
  ASSERT_TRUE(calls_.Add(engine_, 1, kNow, Note()));

  engine_.StartAttempt(0, 2);
  calls_.Resume(engine_);

  EXPECT_THAT(went_on_, ElementsAre(absl::OkStatus()));
}

TEST_F(PostponedCallsTest, CallMayBePostponedAgainWhileItGoesOn) {
  ASSERT_TRUE(calls_.Add(engine_, 1, kNow, [this](const absl::Status&) {
    EXPECT_FALSE(calls_.Add(engine_, 1, kNow, Note()));
    calls_.Resume(engine_);
    went_on_.push_back(absl::OkStatus());
  }));

  engine_.LearnCommitted(1);
  calls_.Resume(engine_);

  EXPECT_THAT(went_on_, ElementsAre(absl::OkStatus()));
}

TEST_F(PostponedCallsTest, OldCallsAreToldToAskAgain) {
  ASSERT_TRUE(calls_.Add(engine_, 1, kNow, Note()));

  calls_.EndOld(kNow);
  EXPECT_THAT(went_on_, IsEmpty());
  calls_.EndOld(kNow + absl::Seconds(1));

  EXPECT_THAT(went_on_,
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("the chief has not said yet"))));
}

TEST_F(PostponedCallsTest, EndOfTheServerEndsAll) {
  ASSERT_TRUE(calls_.Add(engine_, 1, kNow, Note()));

  calls_.EndAll(absl::UnavailableError("gone"));
  calls_.EndAll(absl::UnavailableError("gone"));

  EXPECT_THAT(went_on_, ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                             HasSubstr("gone"))));
}

}  // namespace
}  // namespace lockstep::server
