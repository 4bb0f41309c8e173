#include "worker/client/exchange/last_answers.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

constexpr absl::Time kBegin = absl::UnixEpoch();

TEST(LastAnswersTest, AreAwaitedAsLongAsTrainingGoesOn) {
  LastAnswers last;
  EXPECT_FALSE(last.GivesUp(false, kBegin));
  EXPECT_FALSE(last.GivesUp(false, kBegin + absl::Hours(1)));
}

TEST(LastAnswersTest, AreGivenUpAWhileAfterTheEndOfTraining) {
  LastAnswers last;
  const absl::Time over = kBegin + absl::Hours(1);
  EXPECT_FALSE(last.GivesUp(false, kBegin));
  EXPECT_FALSE(last.GivesUp(true, over));
  EXPECT_FALSE(
      last.GivesUp(true, over + LastAnswers::kLongest - absl::Milliseconds(1)));
  EXPECT_TRUE(last.GivesUp(true, over + LastAnswers::kLongest));
}

TEST(LastAnswersTest, APushThatIsGivenUpCountsAsStale) {
  EXPECT_EQ(LastAnswers::GivenUp().stale, 1);
  EXPECT_EQ(LastAnswers::GivenUp().accepted, 0);
}

}  // namespace
}  // namespace lockstep::worker
