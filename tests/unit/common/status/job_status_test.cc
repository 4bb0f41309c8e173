#include "common/status/job_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(JobStateTest, EveryStateHasAName) {
  EXPECT_EQ(JobStateName(JobState::kStarting), "starting");
  EXPECT_EQ(JobStateName(JobState::kTraining), "training");
  EXPECT_EQ(JobStateName(JobState::kFinishing), "finishing");
  EXPECT_EQ(JobStateName(JobState::kDone), "done");
  EXPECT_EQ(JobStateName(JobState::kFailed), "failed");
  EXPECT_EQ(JobStateName(JobState::kStopped), "stopped");
  EXPECT_EQ(JobStateName(JobState::kUnknown), "unknown");
  EXPECT_EQ(JobStateName(static_cast<JobState>(77)), "unknown");
}

TEST(MemberStateTest, EveryStateHasAName) {
  EXPECT_EQ(MemberStateName(MemberState::kMissing), "missing");
  EXPECT_EQ(MemberStateName(MemberState::kAlive), "alive");
  EXPECT_EQ(MemberStateName(MemberState::kDead), "dead");
  EXPECT_EQ(MemberStateName(MemberState::kLeft), "left");
  EXPECT_EQ(MemberStateName(MemberState::kJoining), "joining");
  EXPECT_EQ(MemberStateName(MemberState::kUnknown), "unknown");
  EXPECT_EQ(MemberStateName(static_cast<MemberState>(77)), "unknown");
}

TEST(JobStateTest, ThreeStatesAreFinal) {
  EXPECT_TRUE(IsFinal(JobState::kDone));
  EXPECT_TRUE(IsFinal(JobState::kFailed));
  EXPECT_TRUE(IsFinal(JobState::kStopped));
  EXPECT_FALSE(IsFinal(JobState::kFinishing));
  EXPECT_FALSE(IsFinal(JobState::kUnknown));
}

TEST(JobStatusTest, WorkersAreToldFromTheOthers) {
  const JobStatus status = {.members = {{.task = "ps 0"},
                                        {.task = "worker 0"},
                                        {.task = "worker 1"},
                                        {.task = "evaluator 0"}}};

  EXPECT_THAT(WorkersOf(status),
              ElementsAre(Field(&MemberStatus::task, "worker 0"),
                          Field(&MemberStatus::task, "worker 1")));
}

}  // namespace
}  // namespace lockstep
