// A worker that is killed, with and without a backup.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Enough steps to kill a task meanwhile.
constexpr int64_t kSteps = 250;
// Long enough for a busy machine, short enough for a test.
constexpr char kLease[] = "lease=4s";

std::vector<std::string> Aggregating(int replicas) {
  return {absl::StrCat("replicas_to_aggregate=", replicas), kLease,
          absl::StrCat("train_steps=", kSteps)};
}

// Expects each task but one worker to end with code 0.

TEST(WorkerDeathTest, TrainingGoesOnWithTheBackup) {
  auto job = TrainingJob::Make({.workers = 3, .set = Aggregating(2)});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());

  job->ExpectOthersSucceed(1);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr(absl::StrCat("done at step ", kSteps))));
}

TEST(WorkerDeathTest, WithoutABackupTheChiefNamesItAndASuccessorGoesOn) {
  auto job = TrainingJob::Make({.workers = 2, .set = Aggregating(2)});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());

  EXPECT_THAT(
      job->cluster().WaitForLog("chief", 0, "worker 1 is gone", kPatience),
      IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(Not(HasSubstr("done at"))));
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

TEST(WorkerDeathTest, ASuccessorThatComesAtOnceNeedsNoLeaseToEnd) {
  auto job = TrainingJob::Make(
      {.workers = 2,
       .set = {"lease=1h", absl::StrCat("train_steps=", kSteps)}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  ASSERT_THAT(job->cluster().Kill("worker", 0), IsOk());

  ASSERT_THAT(job->cluster().Start("worker", 0), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

TEST(WorkerDeathTest, SameBitsAsWithoutADeath) {
  const std::vector<std::string> strict = {
      "lease=1h", absl::StrCat("train_steps=", kSteps)};
  auto undisturbed = TrainingJob::Make({.workers = 2, .set = strict});
  auto job = TrainingJob::Make({.workers = 2, .set = strict});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
}

TEST(WorkerDeathTest, JobFailsWhenNoSuccessorComesWithinMaxWait) {
  std::vector<std::string> set = Aggregating(2);
  set.push_back("max_wait=10s");
  auto job = TrainingJob::Make({.workers = 2, .evaluator = true, .set = set});
  ASSERT_THAT(job->StartServersLast(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 1) continue;
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(cli::TaskExit{.code = 1}))
        << name << " " << index;
    EXPECT_THAT(job->cluster().ReadLog(name, index),
                IsOkAndHolds(HasSubstr("waited longer than max_wait (10s) for "
                                       "worker 1 (gone)")));
  }
}

}  // namespace
}  // namespace lockstep::testing
