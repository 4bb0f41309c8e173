// Workers with mirrors that leave an elastic job, die, and come back. Mirror 0
// is in the process of worker 0, which hosts the chief.

#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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

constexpr cli::TaskExit kDone = {};
constexpr cli::TaskExit kHeld = {.code = kExitHeld};
constexpr cli::TaskExit kStopped = {.code = kExitStopped};
constexpr char kGivenUp[] = "do not come back";

class ElasticMirrorsTest : public ::testing::Test {
 protected:
  // More steps than any test waits for.
  static constexpr int64_t kForever = 1'000'000;

  void Begin(int64_t steps = kForever) {
    job_ = TrainingJob::Make(
        {.servers = 0,
         .workers = 3,
         .chief = false,
         .set = {absl::StrCat("train_steps=", steps), "batch_size=256",
                 "strategy.kind=MULTI_WORKER_MIRRORED", "elastic_workers=true",
                 "lease=2s"}});
    ASSERT_THAT(job_->StartAll(), IsOk());
    ASSERT_THAT(job_->WaitForStep(20), IsOk());
  }

  void Kill(int worker) {
    ASSERT_THAT(job_->cluster().Kill("worker", worker), IsOk());
  }
  void Start(int worker) {
    ASSERT_THAT(job_->cluster().Start("worker", worker), IsOk());
  }

  // Waits until the job has these workers and has made some steps with them.
  void AwaitStepsOf(const std::vector<int>& workers) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      const absl::StatusOr<JobStatus> status = job_->TryStatus();
      if (status.ok() && status->settings.workers == workers) {
        ASSERT_THAT(job_->WaitForStep(status->step + 10), IsOk());
        return;
      }
      absl::SleepFor(absl::Milliseconds(20));
    }
    FAIL() << "the job never has the workers " << absl::StrJoin(workers, ", ");
  }

  void ExpectEnd(int worker, cli::TaskExit exit) {
    EXPECT_THAT(job_->cluster().Wait("worker", worker, kPatience),
                IsOkAndHolds(exit))
        << "worker " << worker;
  }
  // Stops a job that has these workers.
  void ExpectStopInOrder(const std::vector<int>& workers) {
    cli::CoordinatorClient chief(job_->cluster().Address("worker", 0).value());
    ASSERT_THAT(chief.Stop("enough", absl::Seconds(20), /*hold=*/false),
                IsOk());
    for (const int worker : workers) ExpectEnd(worker, kStopped);
    const auto latest = CheckpointStore(job_->checkpoints()).Latest();
    ASSERT_THAT(latest, IsOk());
    EXPECT_TRUE(latest->manifest.has_value());
  }

  std::string StateFileOf(int server) {
    const std::string end = absl::StrCat(".ps-", server, ".state");
    for (const std::string& name : job_->StateFiles()) {
      if (absl::EndsWith(name, end)) {
        return absl::StrCat(job_->state_directory(), "/", name);
      }
    }
    ADD_FAILURE() << "no state of ps " << server;
    return "";
  }

  std::string Log(int worker) {
    return job_->cluster().ReadLog("worker", worker).value_or("");
  }

  std::unique_ptr<TrainingJob> job_;
};

TEST_F(ElasticMirrorsTest, AWorkerThatIsKilledForGoodIsGivenUp) {
  constexpr int64_t kSteps = 1000;
  ASSERT_NO_FATAL_FAILURE(Begin(kSteps));

  ASSERT_NO_FATAL_FAILURE(Kill(2));

  for (const int worker : {0, 1}) ExpectEnd(worker, kDone);
  EXPECT_FALSE(
      ReadCheckpoint(job_->checkpoints(), kSteps, "model.safetensors").empty());
  EXPECT_THAT(Log(0), HasSubstr(kGivenUp));
}

TEST_F(ElasticMirrorsTest, AWorkerThatComesBackTakesPartAgain) {
  for (const bool wiped : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Begin());
    ASSERT_NO_FATAL_FAILURE(Kill(2));
    ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1}));

    if (wiped) RemoveState(*job_, 2);
    ASSERT_NO_FATAL_FAILURE(Start(2));

    ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1, 2}));
    EXPECT_THAT(Log(0), HasSubstr("takes the state of step"));
    ASSERT_NO_FATAL_FAILURE(ExpectStopInOrder({0, 1, 2}));
    // The mirrors have heard that the checkpoint has all they hold.
    EXPECT_THAT(job_->StateFiles(), IsEmpty());
  }
}

// A directory that has the name of the state file, which no server can open,
// stands for a broken disk.
TEST_F(ElasticMirrorsTest, AMirrorThatCannotOpenItsStateEndsNoJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  const std::string state = StateFileOf(2);
  ASSERT_NO_FATAL_FAILURE(Kill(2));
  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1}));
  RemoveState(*job_, 2);
  ASSERT_TRUE(std::filesystem::create_directory(state));

  ASSERT_NO_FATAL_FAILURE(Start(2));

  ExpectEnd(2, {.code = kExitFailed});
  EXPECT_THAT(Log(2), HasSubstr("this mirror cannot take part: ps 2: "));
  EXPECT_THAT(Log(0), HasSubstr("mirror 2 cannot take part (ps 2: "));
  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1}));

  // Once the cause is mended, the worker may come back.
  ASSERT_TRUE(std::filesystem::remove(state));
  ASSERT_NO_FATAL_FAILURE(Start(2));
  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1, 2}));
  ASSERT_NO_FATAL_FAILURE(ExpectStopInOrder({0, 1, 2}));
}

TEST_F(ElasticMirrorsTest, AWorkerThatIsToldToStopLeavesAJobThatGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Begin());

  ASSERT_THAT(job_->cluster().Signal("worker", 1, SIGTERM), IsOk());

  ExpectEnd(1, kStopped);
  EXPECT_THAT(Log(1), HasSubstr("leaves after this pass"));
  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 2}));
  ASSERT_NO_FATAL_FAILURE(ExpectStopInOrder({0, 2}));
}

TEST_F(ElasticMirrorsTest, SoDoesOneThatAnOperatorRemoves) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  cli::CoordinatorClient chief(job_->cluster().Address("worker", 0).value());

  ASSERT_THAT(chief.ChangeSettings({.remove_worker = 1}, absl::Seconds(20)),
              IsOk());

  ExpectEnd(1, kHeld);
  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 2}));
  ASSERT_NO_FATAL_FAILURE(ExpectStopInOrder({0, 2}));
}

TEST_F(ElasticMirrorsTest, AStopOfTheChiefsProcessStopsTheJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());

  ASSERT_THAT(job_->cluster().Signal("worker", 0, SIGTERM), IsOk());

  for (const int worker : {0, 1, 2}) ExpectEnd(worker, kStopped);
  EXPECT_THAT(Log(0), HasSubstr("checkpoint of step"));
  // The mirrors have heard that the checkpoint has all they hold.
  EXPECT_THAT(job_->StateFiles(), IsEmpty());
}

TEST_F(ElasticMirrorsTest, TheChiefMayDieWhileAWorkerIsAway) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_NO_FATAL_FAILURE(Kill(2));
  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1}));

  ASSERT_NO_FATAL_FAILURE(Kill(0));
  ASSERT_NO_FATAL_FAILURE(Start(0));

  ASSERT_NO_FATAL_FAILURE(AwaitStepsOf({0, 1}));
  ASSERT_NO_FATAL_FAILURE(ExpectStopInOrder({0, 1}));
}

}  // namespace
}  // namespace lockstep::testing
