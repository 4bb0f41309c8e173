#include "common/status/job_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(MemberStateTest, EveryStateHasAName) {
  EXPECT_EQ(MemberStateName(MemberState::kMissing), "missing");
  EXPECT_EQ(MemberStateName(MemberState::kAlive), "alive");
  EXPECT_EQ(MemberStateName(MemberState::kDead), "dead");
  EXPECT_EQ(MemberStateName(MemberState::kLeft), "left");
  EXPECT_EQ(MemberStateName(MemberState::kJoining), "joining");
  EXPECT_EQ(MemberStateName(MemberState::kUnknown), "unknown");
  EXPECT_EQ(MemberStateName(static_cast<MemberState>(77)), "unknown");
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
