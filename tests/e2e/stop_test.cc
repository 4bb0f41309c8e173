// SIGTERM: all tasks leave in order, and the stopped job can go on.

#include <signal.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr cli::TaskExit kStopped = {.code = kExitStopped};

// More steps than any test waits for.
constexpr char kForever[] = "train_steps=1000000";

std::string Until(int64_t step) { return absl::StrCat("train_steps=", step); }

// Expects all tasks to leave in order, and returns the step of their
// checkpoint.
int64_t ExpectGoodOrder(TrainingJob& job) {
  for (const auto& [name, index] : job.Tasks()) {
    EXPECT_THAT(job.cluster().Wait(name, index, kPatience),
                IsOkAndHolds(kStopped))
        << name << " " << index;
  }
  EXPECT_THAT(job.StateFiles(), IsEmpty());
  const auto latest = CheckpointStore(job.checkpoints()).Latest();
  EXPECT_THAT(latest, IsOk());
  if (!latest.ok() || !latest->manifest.has_value()) return -1;
  return latest->manifest->global_step;
}

class StopTest : public ::testing::Test {
 protected:
  // Starts a job of `options` and waits for some steps.
  void Begin(const TrainingJob::Options& options) {
    job_ = TrainingJob::Make(options);
    ASSERT_THAT(job_->StartAll(), IsOk());
    ASSERT_THAT(job_->WaitForStep(5), IsOk());
  }

  // All that the job waits for.
  std::string Waits() {
    const auto status = job_->TryStatus();
    std::string waits;
    if (!status.ok()) return waits;
    for (const WaitStatus& wait : status->waits) {
      absl::StrAppend(&waits, wait.waits_for, "\n");
    }
    return waits;
  }

  std::unique_ptr<TrainingJob> job_;
};

TEST_F(StopTest, OfTheChiefLeavesACheckpointFromWhichTheSameBitsFollow) {
  Begin({.evaluator = true, .set = {kForever}});
  // Training does not wait for it.
  ASSERT_THAT(job_->cluster().WaitForLog("chief", 0, "evaluator 0 registered",
                                         kPatience),
              IsOk());

  ASSERT_THAT(job_->cluster().Signal("chief", 0, SIGTERM), IsOk());

  const int64_t step = ExpectGoodOrder(*job_);
  ASSERT_GE(step, 5);
  auto resumed = TrainingJob::Make(
      {.set = {Until(step + 30)}, .checkpoints = job_->checkpoints()});
  auto undisturbed = TrainingJob::Make({.set = {Until(step + 30)}});
  ASSERT_THAT(resumed->Run(), IsOk());
  ASSERT_THAT(undisturbed->Run(), IsOk());
  EXPECT_THAT(resumed->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr(
                  absl::StrCat("resumed from the checkpoint of step ", step))));
  ExpectSameBits(undisturbed->checkpoints(), job_->checkpoints(), step + 30);
}

TEST_F(StopTest, OfAServerStopsTheJobInTheSameWay) {
  Begin({.set = {kForever}});

  ASSERT_THAT(job_->cluster().Signal("ps", 1, SIGTERM), IsOk());

  EXPECT_GE(ExpectGoodOrder(*job_), 5);
  EXPECT_THAT(job_->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("ps 1: SIGTERM")));
}

// The last checkpoint needs the variables of ps 0.
TEST_F(StopTest, OfAServerWaitsForTheCheckpointAsLongAsTheChiefAnswers) {
  Begin({.set = {kForever, "lease=90s", "stall_timeout=90s"}});
  ASSERT_THAT(job_->cluster().Signal("ps", 0, SIGSTOP), IsOk());

  ASSERT_THAT(job_->cluster().Signal("ps", 1, SIGTERM), IsOk());
  // Longer than a server waits for a chief that is silent.
  absl::SleepFor(absl::Seconds(18));
  ASSERT_THAT(job_->cluster().Signal("ps", 0, SIGCONT), IsOk());

  EXPECT_GE(ExpectGoodOrder(*job_), 5);
}

TEST_F(StopTest, OfAServerIsAskedOfAChiefThatWasStartedAgain) {
  Begin({.set = {kForever, "lease=90s", "stall_timeout=90s"}});
  // Keeps the first chief from writing the checkpoint.
  ASSERT_THAT(job_->cluster().Signal("ps", 0, SIGSTOP), IsOk());
  ASSERT_THAT(job_->cluster().Signal("ps", 1, SIGTERM), IsOk());
  ASSERT_THAT(job_->cluster().WaitForLog("ps", 1, "waits for the chief to end",
                                         kPatience),
              IsOk());
  ASSERT_THAT(job_->cluster().Kill("chief", 0), IsOk());

  ASSERT_THAT(job_->cluster().Start("chief", 0), IsOk());
  ASSERT_THAT(job_->cluster().Signal("ps", 0, SIGCONT), IsOk());

  EXPECT_GE(ExpectGoodOrder(*job_), 5);
}

// Before all servers start from an older step, a chief waits a
// heartbeat_interval for workers of an earlier chief.
TEST_F(StopTest, OfAChiefThatAwaitsWorkersOfAnEarlierChief) {
  static_assert(kPatience < absl::Seconds(120));
  Begin({.set = {kForever, "heartbeat_interval=120s", "lease=600s",
                 "stall_timeout=600s"}});
  for (const auto& [name, index] : job_->Tasks()) {
    ASSERT_THAT(job_->cluster().Kill(name, index), IsOk());
  }
  for (const std::string& name : job_->StateFiles()) {
    if (!absl::StrContains(name, ".ps-1.")) continue;
    std::filesystem::remove(absl::StrCat(job_->state_directory(), "/", name));
  }
  ASSERT_THAT(job_->StartAll(), IsOk());
  const absl::Time deadline = absl::Now() + kPatience;
  while (!absl::StrContains(Waits(), "a heartbeat of each worker")) {
    ASSERT_LT(absl::Now(), deadline) << job_->ChiefLog();
    absl::SleepFor(absl::Milliseconds(10));
  }

  ASSERT_THAT(job_->cluster().Signal("chief", 0, SIGTERM), IsOk());

  EXPECT_THAT(job_->cluster().Wait("chief", 0, kPatience),
              IsOkAndHolds(kStopped));
}

TEST_F(StopTest, OfAWorkerWithABackupStopsOnlyThatWorker) {
  // Many: the job must last until the third worker has come and is stopped.
  Begin({.workers = 3, .set = {"replicas_to_aggregate=2", Until(4000)}});
  ASSERT_THAT(
      job_->cluster().WaitForLog("chief", 0, "worker 2 registered", kPatience),
      IsOk());

  ASSERT_THAT(job_->cluster().Signal("worker", 2, SIGTERM), IsOk());

  for (const auto& [name, index] : job_->Tasks()) {
    const bool stopped = name == "worker" && index == 2;
    EXPECT_THAT(job_->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(stopped ? kStopped : cli::TaskExit{}))
        << name << " " << index;
  }
  EXPECT_THAT(job_->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("worker 2 left: ")));
}

TEST_F(StopTest, BeforeAnyStepNeedsNoCheckpoint) {
  job_ = TrainingJob::Make({.set = {kForever}});
  ASSERT_THAT(job_->cluster().Start("chief", 0), IsOk());
  ASSERT_THAT(job_->cluster().Start("worker", 0), IsOk());
  ASSERT_THAT(
      job_->cluster().WaitForLog("chief", 0, "worker 0 registered", kPatience),
      IsOk());

  ASSERT_THAT(job_->cluster().Signal("chief", 0, SIGTERM), IsOk());

  EXPECT_THAT(job_->cluster().Wait("chief", 0, kPatience),
              IsOkAndHolds(kStopped));
  EXPECT_THAT(job_->cluster().Wait("worker", 0, kPatience),
              IsOkAndHolds(kStopped));
}

TEST_F(StopTest, OfAProcessThatWaitsForItsChiefEndsItAtOnce) {
  job_ = TrainingJob::Make({.evaluator = true, .set = {kForever}});
  for (const auto& [name, index] : job_->Tasks()) {
    if (name == "chief") continue;
    ASSERT_THAT(job_->cluster().Start(name, index), IsOk());
  }

  for (const auto& [name, index] : job_->Tasks()) {
    if (name == "chief") continue;
    // Each by itself: one that has just been started would die of the signal.
    ASSERT_THAT(
        job_->cluster().WaitForLog(name, index, "for the chief at", kPatience),
        IsOk());
    ASSERT_THAT(job_->cluster().Signal(name, index, SIGTERM), IsOk());
    EXPECT_THAT(job_->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(kStopped))
        << name << " " << index;
  }
}

}  // namespace
}  // namespace lockstep::testing
