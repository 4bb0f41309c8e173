// A worker with an error that a restart would not cure leaves for good. If too
// few are left for a step, the job does not wait for a successor.

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Far below max_wait, which is ten minutes.
constexpr absl::Duration kAtOnce = absl::Seconds(90);

TEST(WorkerFailureTest, JobFailsWhenTooFewWorkersAreLeft) {
  auto job = TrainingJob::Make({.set = {"learning_rate=1e30"}});
  ASSERT_THAT(job->StartAll(), IsOk());

  for (const auto& [task, index] : job->Tasks()) {
    EXPECT_THAT(job->cluster().Wait(task, index, kAtOnce),
                IsOkAndHolds(cli::TaskExit{.code = 1}))
        << task << " " << index;
  }

  EXPECT_THAT(
      job->cluster().ReadLog("chief", 0),
      IsOkAndHolds(AllOf(HasSubstr("the job failed: worker"),
                         HasSubstr("left: failed: the gradient of"),
                         HasSubstr("workers are left, and a step needs 2"))));
  EXPECT_THAT(job->cluster().ReadLog("ps", 0),
              IsOkAndHolds(HasSubstr("the gradient of")));
}

}  // namespace
}  // namespace lockstep::testing
