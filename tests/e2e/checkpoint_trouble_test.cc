// A checkpoint volume that is temporarily unavailable, or hangs.

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

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

TEST(CheckpointTroubleTest, ChiefThatIsStoppedEndsAlthoughItsVolumeHangs) {
  auto job =
      TrainingJob::Make({.set = {"train_steps=1000000",
                                 "checkpoint.every_steps=20", "max_wait=8s"}});
  job->cluster().SetEnvironment("chief", 0, "LOCKSTEP_FAULT",
                                "chief.rename.before:1:stall");
  ASSERT_THAT(job->StartServersLast(), IsOk());
  ASSERT_THAT(job->WaitForStep(25), IsOk());

  ASSERT_THAT(job->cluster().Signal("chief", 0, SIGTERM), IsOk());

  EXPECT_THAT(job->cluster().Wait("chief", 0, kPatience), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("takes longer than max_wait (8s)")));
}

}  // namespace
}  // namespace lockstep::testing
