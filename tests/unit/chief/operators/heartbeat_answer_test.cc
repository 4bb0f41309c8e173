#include "chief/operators/heartbeat_answer.h"

#include <utility>

#include "gtest/gtest.h"
namespace lockstep::chief {
namespace {

TEST(HeartbeatAnswerTest, MemberLearnsHowTheJobHasEnded) {
  MemberAnswers::Heard heard;
  heard.job.state = JobState::kStopped;
  heard.job.reason = "an operator";
  heard.job.global_step = 3;
  heard.job.hold = true;
  heard.job.state_saved = true;
  v1::HeartbeatResponse response;
  FillHeard(heard, response);
  EXPECT_EQ(response.state(), v1::JOB_STOPPED);
  EXPECT_EQ(response.reason(), "an operator");
  EXPECT_EQ(response.global_step(), 3);
  EXPECT_TRUE(response.hold());
  EXPECT_TRUE(response.state_saved());
  EXPECT_FALSE(response.model_wanted());
  EXPECT_FALSE(response.leave());
}

TEST(HeartbeatAnswerTest, EachStateOfTheJobHasItsNumberOnTheWire) {
  const std::pair<JobState, v1::JobState> states[] = {
      {JobState::kStarting, v1::JOB_STARTING},
      {JobState::kTraining, v1::JOB_TRAINING},
      {JobState::kFinishing, v1::JOB_FINISHING},
      {JobState::kDone, v1::JOB_DONE},
      {JobState::kFailed, v1::JOB_FAILED},
      {JobState::kStopped, v1::JOB_STOPPED}};
  for (const auto& [state, on_the_wire] : states) {
    MemberAnswers::Heard heard;
    heard.job.state = state;
    v1::HeartbeatResponse response;
    FillHeard(heard, response);
    EXPECT_EQ(response.state(), on_the_wire);
  }
}

TEST(HeartbeatAnswerTest, MemberLearnsWhatIsAskedOfIt) {
  MemberAnswers::Heard heard;
  heard.job.state = JobState::kTraining;
  heard.model_wanted = true;
  heard.leave = true;
  v1::HeartbeatResponse response;
  FillHeard(heard, response);
  EXPECT_EQ(response.state(), v1::JOB_TRAINING);
  EXPECT_TRUE(response.model_wanted());
  EXPECT_TRUE(response.leave());
}

}  // namespace
}  // namespace lockstep::chief
