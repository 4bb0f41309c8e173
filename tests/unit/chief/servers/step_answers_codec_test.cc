#include "chief/servers/step_answers_codec.h"

#include "chief/servers/take_result.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(StepAnswersCodecTest, AnswerToATakeArrivesWhole) {
  v1::TakeAndApplyResponse response;
  response.set_prepared(true);
  response.set_attempt(7);
  response.set_committed_step(41);
  response.set_waits_for("worker 2");
  response.add_announced_workers(2);
  response.set_open_parts(3);
  v1::PushedParts& pushed = *response.add_pushed();
  pushed.set_worker(1);
  pushed.set_parts(5);
  response.add_lost_workers(6);
  response.add_contributors(0);
  response.add_contributors(1);

  const TakeResult answer = AnswerFrom(response);

  EXPECT_TRUE(answer.prepared);
  EXPECT_EQ(answer.attempt, 7);
  EXPECT_EQ(answer.committed_step, 41);
  EXPECT_EQ(answer.waits_for, "worker 2");
  EXPECT_THAT(answer.announced_workers, ElementsAre(2));
  EXPECT_EQ(answer.open_parts, 3);
  EXPECT_THAT(answer.pushed, ElementsAre(Pair(1, 5)));
  EXPECT_THAT(answer.lost_workers, ElementsAre(6));
  EXPECT_THAT(answer.contributors, ElementsAre(0, 1));
}

}  // namespace
}  // namespace lockstep::chief
