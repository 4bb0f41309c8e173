// A server that is killed and restarted, with its state and without.

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/e2e/undisturbed_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void Restart(TrainingJob& job, const std::string& name, int index) {
  ASSERT_THAT(job.cluster().Kill(name, index), IsOk());
  ASSERT_THAT(job.cluster().Start(name, index), IsOk());
}

using ServerDeathTest = UndisturbedFixture;

TEST_F(ServerDeathTest, KilledServersGoOnFromTheStepTheyWereAt) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());

  ASSERT_THAT(job->WaitForStep(20), IsOk());
  for (int kill = 0; kill < 6; ++kill) {
    ASSERT_NO_FATAL_FAILURE(Restart(*job, "ps", kill % 2));
    // At most one step that began before the kill may still be committed, so 20
    // more show that the job goes on. Two deaths thus never fall into one
    // recovery, which the count below requires.
    auto status = job->GetStatus();
    ASSERT_THAT(status, IsOk());
    ASSERT_THAT(job->WaitForStep(status->step + 20), IsOk());
  }

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(), AllOf(HasSubstr("the job waits for ps 1"),
                                     HasSubstr("the job goes on from step"),
                                     HasSubstr("servers were away 6 times"),
                                     HasSubstr(" 0 committed steps repeated")));
}

TEST_F(ServerDeathTest, AllServersAtOnce) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());

  for (int server : {0, 1}) {
    ASSERT_THAT(job->cluster().Kill("ps", server), IsOk());
  }
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(), HasSubstr(" 0 committed steps repeated"));
}

TEST_F(ServerDeathTest, OnlyServerThatCommitsAheadOfTheChief) {
  auto undisturbed = TrainingJob::Make({.servers = 1, .set = Steps()});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.servers = 1, .set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());

  for (int kill = 0; kill < 3; ++kill) {
    ASSERT_THAT(job->WaitForStep(20 + 100 * kill), IsOk());
    ASSERT_NO_FATAL_FAILURE(Restart(*job, "ps", 0));
  }

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
}

TEST_F(ServerDeathTest, WithoutItsStateAllGoBackToTheLastCheckpoint) {
  std::vector<std::string> set = Steps();
  set.push_back("checkpoint.every_steps=30");
  auto job = TrainingJob::Make({.set = set});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());

  ASSERT_THAT(job->cluster().Kill("ps", 1), IsOk());
  std::filesystem::remove_all(job->state_directory());
  ASSERT_THAT(job->cluster().Start("ps", 1), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(),
              AllOf(HasSubstr("ps 1 has lost its state: all servers go back to "
                              "the checkpoint of step "),
                    HasSubstr("repeated: ")));
}

// The next heartbeats would come long after the test has given up.
TEST_F(ServerDeathTest, WorkersThatAreRefusedRegisterBeforeTheirNextHeartbeat) {
  auto job = TrainingJob::Make(
      {.set = {"train_steps=1000000", "checkpoint.every_steps=30",
               "lease=7200s", "heartbeat_interval=3000s",
               "stall_timeout=7200s"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());

  ASSERT_THAT(job->cluster().Kill("ps", 1), IsOk());
  const auto status = job->GetStatus();
  ASSERT_THAT(status, IsOk());
  std::filesystem::remove_all(job->state_directory());
  ASSERT_THAT(job->cluster().Start("ps", 1), IsOk());

  // At most the step that began before the kill is committed without it.
  EXPECT_THAT(job->WaitForStep(status->step + 20), IsOk());
  EXPECT_THAT(job->ChiefLog(), HasSubstr("ps 1 has lost its state"));
  // From the chief. Without its word a worker registers again seconds later.
  for (const int worker : {0, 1}) {
    EXPECT_THAT(job->cluster().ReadLog("worker", worker),
                IsOkAndHolds(HasSubstr("was taken for dead; register with")));
  }
}

TEST_F(ServerDeathTest, WithoutStateAndCheckpointAllStartAnew) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());

  ASSERT_THAT(job->cluster().Kill("ps", 0), IsOk());
  std::filesystem::remove_all(job->state_directory());
  ASSERT_THAT(job->cluster().Start("ps", 0), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(),
              HasSubstr("ps 0 has lost its state: all servers go back to their "
                        "initial values"));
}

TEST_F(ServerDeathTest, WithBackupsAndInCompatibleModeTheJobEndsToo) {
  for (const char* mode : {"replicas_to_aggregate=2", "mode=COMPATIBLE"}) {
    std::vector<std::string> set = Steps();
    set.push_back(mode);
    auto job = TrainingJob::Make({.workers = 3, .set = set});
    ASSERT_THAT(job->StartAll(), IsOk());
    for (int server : {1, 0}) {
      ASSERT_THAT(job->WaitForStep(server == 1 ? 20 : 100), IsOk());
      ASSERT_NO_FATAL_FAILURE(Restart(*job, "ps", server));
    }

    EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk()) << mode;
    EXPECT_THAT(job->ChiefLog(),
                HasSubstr(absl::StrCat("done at step ", kSteps)));
  }
}

TEST_F(ServerDeathTest, FewerWorkersThanReplicasComputeTheirSharesOnceMore) {
  std::vector<std::string> set = Steps();
  set.push_back("replicas_to_aggregate=4");
  auto undisturbed = TrainingJob::Make({.set = set});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.set = set});
  ASSERT_THAT(job->StartAll(), IsOk());
  for (int server : {0, 1}) {
    ASSERT_THAT(job->WaitForStep(20 + 100 * server), IsOk());
    ASSERT_NO_FATAL_FAILURE(Restart(*job, "ps", server));
  }

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
}

}  // namespace
}  // namespace lockstep::testing
