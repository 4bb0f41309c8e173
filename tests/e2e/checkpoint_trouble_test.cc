// A checkpoint volume that is temporarily unavailable.

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

TEST(CheckpointTroubleTest, TrainingGoesOnAndTheNextOneIsTried) {
  constexpr int64_t kSteps = 600;
  auto job = TrainingJob::Make({.set = {absl::StrCat("train_steps=", kSteps),
                                        "checkpoint.every_steps=20"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());

  PutInTheWay(job->checkpoints());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "the one before stays", kPatience),
      IsOk());
  TakeOutOfTheWay(job->checkpoints());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_FALSE(
      ReadCheckpoint(job->checkpoints(), kSteps, "model.safetensors").empty());
}

}  // namespace
}  // namespace lockstep::testing
