#include "common/membership/coordinator_answers.h"

#include <string>
#include <utility>

#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CoordinatorAnswersTest, StatesOfAJobAreToldApart) {
  using Job = Membership::Answer::Job;
  const std::pair<v1::JobState, Job> states[] = {
      {v1::JOB_STATE_UNSPECIFIED, Job::kWaits},
      {v1::JOB_STARTING, Job::kWaits},
      {v1::JOB_TRAINING, Job::kTrains},
      {v1::JOB_FINISHING, Job::kWaits},
      {v1::JOB_DONE, Job::kDone},
      {v1::JOB_FAILED, Job::kFailed},
      {v1::JOB_STOPPED, Job::kStopped},
      {static_cast<v1::JobState>(99), Job::kWaits}};
  for (const auto& [state, job] : states) {
    v1::HeartbeatResponse response;
    response.set_state(state);
    response.set_reason("why");
    response.set_hold(true);
    response.set_state_saved(true);
    const Membership::Answer answer = AnswerOf(response);
    EXPECT_EQ(answer.job, job) << state;
    EXPECT_TRUE(answer.state_saved);
    // Only a job that is stopped is held, and may be started otherwise again.
    EXPECT_EQ(answer.hold, job == Job::kStopped) << state;
    EXPECT_EQ(answer.reason,
              job == Job::kStopped || job == Job::kFailed ? "why" : "")
        << state;
  }
}

TEST(CoordinatorAnswersTest, ReasonOfAStopIsCut) {
  v1::HeartbeatResponse response;
  response.set_state(v1::JOB_STOPPED);
  response.set_hold(true);
  response.set_reason(std::string(100'000, 'x'));

  const Membership::Answer answer = AnswerOf(response);

  EXPECT_EQ(answer.job, Membership::Answer::Job::kStopped);
  EXPECT_TRUE(answer.hold);
  EXPECT_LT(answer.reason.size(), 2000u);
}

TEST(CoordinatorAnswersTest, JobThatCannotBeIsRefused) {
  JobConfig job;
  job.name = "a\nname";
  v1::RegisterResponse response;
  *response.mutable_job() = ToProto(job);

  EXPECT_THAT(JobOf(response),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name")));
}

TEST(CoordinatorAnswersTest, AgesOfAHistoryGrowWithIt) {
  v1::JobHistory history;
  history.set_training(true);
  history.mutable_training_time()->set_seconds(10);
  history.add_deaths()->mutable_since()->set_seconds(3);

  const v1::JobHistory aged = Aged(history, absl::Seconds(5));

  EXPECT_EQ(aged.training_time().seconds(), 15);
  EXPECT_EQ(aged.deaths(0).since().seconds(), 8);
}

// The job was paused, for example, and no chief has resumed it since.
TEST(CoordinatorAnswersTest, TrainingTimeOfAJobThatDidNotTrainStays) {
  v1::JobHistory history;
  history.mutable_training_time()->set_seconds(10);
  history.add_deaths()->mutable_since()->set_seconds(3);

  const v1::JobHistory aged = Aged(history, absl::Seconds(5));

  EXPECT_EQ(aged.training_time().seconds(), 10);
  EXPECT_EQ(aged.deaths(0).since().seconds(), 8);
}

}  // namespace
}  // namespace lockstep
