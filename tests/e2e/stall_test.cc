// A worker in the set of a step that stands still.

#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSteps = 300;

// A long lease, so that no task is taken for dead.
std::vector<std::string> Stalling(const std::string& timeout) {
  return {"replicas_to_aggregate=2", "lease=1h",
          absl::StrCat("stall_timeout=", timeout),
          absl::StrCat("train_steps=", kSteps)};
}

// Expects each task but the stalled worker to end with code 0.

struct Point {
  const char* name;
  int64_t steps;  // steps before the stall
};

// Its heartbeats continue while its push does not reach the servers.
class StallTest : public ::testing::TestWithParam<Point> {};

TEST_P(StallTest, BackupTakesThePlaceOfAMemberWhoseDataPathIsBlocked) {
  auto job = TrainingJob::Make({.workers = 3, .set = Stalling("1s")});
  job->cluster().SetEnvironment("worker", 1, "LOCKSTEP_FAULT", GetParam().name);

  // The backup starts when the others wait for it, so that worker 1 is a
  // member.
  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 2) continue;
    ASSERT_THAT(job->cluster().Start(name, index), IsOk());
  }
  ASSERT_THAT(job->WaitForStep(GetParam().steps), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 2), IsOk());

  job->ExpectOthersSucceed(1);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("worker 1 holds up step")));
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(Not(HasSubstr("worker 1 is gone"))));
  EXPECT_THAT(job->cluster().Kill("worker", 1), IsOk());
}

// With some of its twelve parts pushed, and with none.
INSTANTIATE_TEST_SUITE_P(
    Points, StallTest,
    ::testing::Values(Point{"worker.push.send:40:stall", 3},
                      Point{"worker.push.send:13:stall", 1}),
    [](const auto& info) { return absl::StrCat("Point", info.index); });

TEST(StallEndTest, WorkerThatStandsStillForAWhileGoesOnAfterwards) {
  auto job = TrainingJob::Make({.workers = 3, .set = Stalling("1s")});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Signal("worker", 0, SIGSTOP), IsOk());
  ASSERT_THAT(job->WaitForStep(60), IsOk());
  ASSERT_THAT(job->cluster().Signal("worker", 0, SIGCONT), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

// The lease and the time of a stall are so long that the end of the connection
// alone can tell.
TEST(StallEndTest, BackupTakesThePlaceOfAMemberThatIsKilledAtOnce) {
  auto job = TrainingJob::Make({.workers = 3, .set = Stalling("1h")});
  job->cluster().SetEnvironment("worker", 1, "LOCKSTEP_FAULT",
                                "worker.push.send:40:kill");

  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 2) continue;
    ASSERT_THAT(job->cluster().Start(name, index), IsOk());
  }
  ASSERT_THAT(job->WaitForStep(3), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 2), IsOk());

  job->ExpectOthersSucceed(1);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("its connection has ended")));
}

TEST(StallEndTest, WithoutABackupTheChiefNamesTheWorkerThatItWaitsFor) {
  auto job = TrainingJob::Make({.workers = 2, .set = Stalling("1s")});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Signal("worker", 1, SIGSTOP), IsOk());

  EXPECT_THAT(
      job->cluster().WaitForLog("chief", 0, "1 of 2 gradients", kPatience),
      IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("parts; worker 1 (")));
  ASSERT_THAT(job->cluster().Signal("worker", 1, SIGCONT), IsOk());
  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(Not(HasSubstr("has its place"))));
}

}  // namespace
}  // namespace lockstep::testing
