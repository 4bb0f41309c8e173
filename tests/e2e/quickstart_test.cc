// The quickstart's job, from start to end.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSteps = 200;

std::vector<std::string> QuickstartJob() {
  return {"replicas_to_aggregate=2", "total_num_replicas=3",
          absl::StrCat("train_steps=", kSteps), "checkpoint.every_steps=50",
          "checkpoint.keep=2"};
}

TEST(QuickstartTest, EveryProcessEndsWithZeroSoonAfterTheLastStep) {
  auto job = TrainingJob::Make(
      {.workers = 3, .evaluator = true, .set = QuickstartJob()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(kSteps), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(absl::Seconds(5)), IsOk());
}

TEST(QuickstartTest, LeavesACheckpointAScoreAndNoState) {
  std::vector<std::string> settings = QuickstartJob();
  settings.push_back("checkpoint.keep=1");  // however many there were
  auto job = TrainingJob::Make(
      {.workers = 3, .evaluator = true, .set = std::move(settings)});

  ASSERT_THAT(job->Run(), IsOk());

  const CheckpointStore store(job->checkpoints());
  EXPECT_THAT(store.Verify(kSteps), IsOk());
  for (int64_t step = 50; step < kSteps; step += 50) {
    EXPECT_THAT(store.Verify(step), StatusIs(absl::StatusCode::kNotFound));
  }
  EXPECT_THAT(job->StateFiles(), IsEmpty());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("step 200: test accuracy")));
}

TEST(QuickstartTest, LearnsThePictures) {
  auto job = TrainingJob::Make(
      {.workers = 3, .evaluator = true, .set = QuickstartJob()});
  ASSERT_THAT(job->StartAll(), IsOk());

  ASSERT_THAT(job->cluster().WaitForLog("evaluator", 0, "step 200: accuracy ",
                                        kPatience),
              IsOk());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(::testing::ContainsRegex(
                  "step 200: accuracy (0\\.9[0-9]|1)")));
}

}  // namespace
}  // namespace lockstep::testing
