#include "common/plan/job_state.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {
namespace {

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

TEST(JobStateTest, NumbersAreThoseOfTheMessage) {
  for (int number = 1; number <= v1::JobState_MAX; ++number) {
    EXPECT_EQ(absl::StrCat("JOB_", absl::AsciiStrToUpper(JobStateName(
                                       static_cast<JobState>(number)))),
              v1::JobState_Name(static_cast<v1::JobState>(number)));
  }
}

TEST(JobStateTest, ThreeStatesAreFinal) {
  EXPECT_TRUE(IsFinal(JobState::kDone));
  EXPECT_TRUE(IsFinal(JobState::kFailed));
  EXPECT_TRUE(IsFinal(JobState::kStopped));
  EXPECT_FALSE(IsFinal(JobState::kFinishing));
  EXPECT_FALSE(IsFinal(JobState::kTraining));
  EXPECT_FALSE(IsFinal(JobState::kStarting));
  EXPECT_FALSE(IsFinal(JobState::kUnknown));
}

}  // namespace
}  // namespace lockstep
