// A checkpoint volume that is temporarily unavailable.

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

// A file in place of the directory prevents writing there, even for root.
TEST(CheckpointTroubleTest, TrainingGoesOnAndTheNextOneIsTried) {
  constexpr int64_t kSteps = 600;
  auto job = TrainingJob::Make({.set = {absl::StrCat("train_steps=", kSteps),
                                        "checkpoint.every_steps=20"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());

  const std::string aside = absl::StrCat(job->checkpoints(), ".aside");
  std::filesystem::rename(job->checkpoints(), aside);
  std::ofstream(job->checkpoints()) << "in the way";
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "the one before stays", kPatience),
      IsOk());
  std::filesystem::remove(job->checkpoints());
  std::filesystem::rename(aside, job->checkpoints());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_FALSE(
      ReadCheckpoint(job->checkpoints(), kSteps, "model.safetensors").empty());
}

}  // namespace
}  // namespace lockstep::testing
