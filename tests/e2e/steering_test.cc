// Operators change a running job, and workers of an elastic job join and leave.

#include <signal.h>

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/scrape.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr cli::TaskExit kHeld = {.code = kExitHeld};
constexpr cli::TaskExit kStopped = {.code = kExitStopped};
constexpr absl::Duration kTimeout = absl::Seconds(20);
// More steps than any test waits for.
constexpr char kForever[] = "train_steps=1000000";

class SteeringTest : public ::testing::Test {
 protected:
  void Begin(const TrainingJob::Options& options) {
    job_ = TrainingJob::Make(options);
    ASSERT_THAT(job_->StartAll(), IsOk());
    ASSERT_THAT(job_->WaitForStep(5), IsOk());
    chief_ = std::make_unique<cli::CoordinatorClient>(
        job_->cluster().Address("chief", 0).value());
  }

  // Waits until `so` is true of the chief's status.
  JobStatus WaitUntil(const std::function<bool(const JobStatus&)>& so) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      const auto status = chief_->GetStatus(kTimeout);
      if (status.ok() && so(*status)) return *status;
      absl::SleepFor(absl::Milliseconds(50));
    }
    ADD_FAILURE() << "waited in vain";
    return {};
  }

  // Makes a change, and waits until it is in effect.
  JobStatus Change(const cli::CoordinatorClient::Change& change) {
    const auto revision = chief_->ChangeSettings(change, kTimeout);
    EXPECT_THAT(revision, IsOk());
    return WaitUntil([&](const JobStatus& status) {
      return status.settings.revision >= revision.value_or(0);
    });
  }

  // Expects further steps.
  void ExpectMoreSteps() {
    EXPECT_THAT(job_->WaitForStep(chief_->GetStatus(kTimeout)->step + 5),
                IsOk());
  }

  // Waits until the worker is about to begin its first pass: fewer than all
  // workers are enough for a step, so it may not even have registered.
  void AwaitWorker(int worker) {
    ASSERT_THAT(job_->cluster().WaitForLog(
                    "worker", worker, "shares memory with ps 1", kPatience),
                IsOk());
  }

  void ExpectEnd(const std::string& task, int index, cli::TaskExit exit) {
    EXPECT_THAT(job_->cluster().Wait(task, index, kPatience),
                IsOkAndHolds(exit))
        << task << " " << index;
  }

  std::unique_ptr<TrainingJob> job_;
  std::unique_ptr<cli::CoordinatorClient> chief_;
};

TEST_F(SteeringTest, ChangesHoldOnAllServersAndOutliveTheChief) {
  Begin({.workers = 3, .set = {"replicas_to_aggregate=2", kForever}});
  Change({.replicas_to_aggregate = 3, .learning_rate = 0.03125});
  ExpectMoreSteps();
  EXPECT_THAT(job_->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("replicas_to_aggregate 2 -> 3")));

  ASSERT_THAT(job_->cluster().Kill("chief", 0), IsOk());
  ASSERT_THAT(job_->cluster().Start("chief", 0), IsOk());

  const JobStatus after = WaitUntil([](const JobStatus& status) {
    return status.state == JobState::kTraining;
  });
  EXPECT_EQ(after.settings.replicas_to_aggregate, 3);
  EXPECT_EQ(after.settings.learning_rate, 0.03125);
  ExpectMoreSteps();

  ASSERT_THAT(chief_->Stop("lunch", kTimeout, /*hold=*/true), IsOk());
  for (const auto& [task, index] : job_->Tasks()) ExpectEnd(task, index, kHeld);
}

// For supervisors: a task that ended in order must not be restarted.
TEST_F(SteeringTest, AStoppedJobIsDoneForTasksThatAreToldSo) {
  Begin({.workers = 3,
         .set = {"elastic_workers=true", "replicas_to_aggregate=2", kForever},
         .more_args = {"--stopped_is_done"}});
  // One that comes when it has been removed would join anew, and one that comes
  // after the stop finds no chief.
  for (const int worker : {0, 1, 2}) {
    ASSERT_NO_FATAL_FAILURE(AwaitWorker(worker));
  }

  Change({.remove_worker = 1});
  ExpectEnd("worker", 1, cli::TaskExit{});
  ExpectMoreSteps();

  ASSERT_THAT(chief_->Stop("lunch", kTimeout, /*hold=*/true), IsOk());
  for (const auto& [task, index] : job_->Tasks()) {
    if (task == "worker" && index == 1) continue;
    ExpectEnd(task, index, task == "chief" ? kHeld : cli::TaskExit{});
  }
}

TEST_F(SteeringTest, APausedJobStandsStillAndCanBeSaved) {
  Begin({.set = {kForever}});

  const int64_t step = Change({.paused = true}).step;
  ASSERT_THAT(chief_->Checkpoint(kTimeout), IsOk());
  const JobStatus saved = WaitUntil([&](const JobStatus& status) {
    return status.last_checkpoint_step >= step;
  });
  EXPECT_EQ(saved.step, saved.last_checkpoint_step);
  EXPECT_EQ(chief_->GetStatus(kTimeout)->step, saved.step);

  Change({.paused = false});
  ExpectMoreSteps();
  ASSERT_THAT(chief_->Stop("", kTimeout), IsOk());
  for (const auto& [task, index] : job_->Tasks()) {
    ExpectEnd(task, index, kStopped);
  }
}

TEST_F(SteeringTest, APausedJobIsStillPausedWhenItGoesOnFromItsCheckpoint) {
  Begin({.set = {kForever}});
  Change({.paused = true});
  ASSERT_THAT(chief_->Stop("it moves", kTimeout), IsOk());
  for (const auto& [task, index] : job_->Tasks()) {
    ExpectEnd(task, index, kStopped);
  }

  for (const auto& [task, index] : job_->Tasks()) {
    ASSERT_THAT(job_->cluster().Start(task, index), IsOk());
  }
  const JobStatus paused = WaitUntil([](const JobStatus& status) {
    return status.state == JobState::kTraining && status.settings.paused;
  });
  EXPECT_EQ(paused.step, paused.last_checkpoint_step);

  Change({.paused = false});
  ExpectMoreSteps();
}

TEST_F(SteeringTest, AStepThatWaitsForADeadWorkerCanBeHelped) {
  Begin({.set = {kForever}});
  ASSERT_THAT(job_->cluster().Kill("worker", 1), IsOk());

  EXPECT_THAT(chief_->ChangeSettings({.replicas_to_aggregate = 3}, kTimeout),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the job has 2 workers")));
  Change({.replicas_to_aggregate = 1});

  ExpectMoreSteps();
}

TEST_F(SteeringTest, CompatibleModeChangesBetweenSteps) {
  Begin({.workers = 3,
         .set = {"mode=COMPATIBLE", "replicas_to_aggregate=2", kForever}});

  Change({.replicas_to_aggregate = 4});
  ExpectMoreSteps();
  Change({.replicas_to_aggregate = 1, .learning_rate = 0.001});
  ExpectMoreSteps();
}

// No operator changes this job, whose replicas_to_aggregate is AUTO.
TEST_F(SteeringTest, WorkerThatIsAlwaysSlowBecomesABackupByItself) {
  TrainingJob::Options options;
  options.workers = 3;
  options.worker_program = {ProgramPath("session_worker"), {"--pass_ms=15"}};
  options.set = {"replicas_to_aggregate=AUTO", "model.kind=external",
                 "model.hidden_units=",        "learning_rate=1e-6",
                 "heartbeat_interval=100ms",   kForever};
  job_ = TrainingJob::Make(options);
  job_->cluster().AddArgument("worker", 2, "--pass_ms=150");
  job_->cluster().AddArgument("chief", 0, "--status_address=127.0.0.1:0");
  ASSERT_THAT(job_->StartAll(), IsOk());
  chief_ = std::make_unique<cli::CoordinatorClient>(
      job_->cluster().Address("chief", 0).value());

  const JobStatus tuned = WaitUntil([](const JobStatus& status) {
    return status.settings.replicas_to_aggregate == 2;
  });

  const auto notice = std::find_if(
      tuned.notices.begin(), tuned.notices.end(),
      [](const auto& one) { return absl::StartsWith(one.text, "AUTO: "); });
  ASSERT_NE(notice, tuned.notices.end());
  EXPECT_THAT(notice->text, AllOf(HasSubstr("1 backup instead of 0"),
                                  HasSubstr("one of worker 2 "),
                                  HasSubstr("a gradient is expected every")));
  EXPECT_THAT(job_->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr(notice->text)));
  EXPECT_THAT(
      chief_->ChangeSettings({.replicas_to_aggregate = 3}, kTimeout),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("it is AUTO")));
  ExpectMoreSteps();

  // The page's story has come to all settings when it has come to this one.
  Change({.learning_rate = 1e-7});
  std::string page;
  const absl::Time end = absl::Now() + kPatience;
  while (!absl::StrContains(page, "an operator changes the learning rate") &&
         absl::Now() < end) {
    page = Get(*job_, "chief", 0, "/");
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("an operator changes the learning rate"),
                          HasSubstr("AUTO: after step")));
  EXPECT_THAT(page, Not(HasSubstr("an operator changes replicas")));
}

TEST_F(SteeringTest, WorkersOfAnElasticJobComeAndGo) {
  Begin({.workers = 3,
         .set = {"elastic_workers=true", "replicas_to_aggregate=2", kForever}});

  for (const int worker : {0, 1}) {
    ASSERT_NO_FATAL_FAILURE(AwaitWorker(worker));
  }
  ASSERT_THAT(job_->cluster().Signal("worker", 1, SIGTERM), IsOk());
  ExpectEnd("worker", 1, kStopped);
  const auto left = [](const JobStatus& status) {
    return status.settings.workers == std::vector<int>{0, 2};
  };
  EXPECT_EQ(WaitUntil(left).settings.replicas_to_aggregate, 1);
  ExpectMoreSteps();
  EXPECT_THAT(job_->cluster().ReadLog("worker", 1),
              IsOkAndHolds(HasSubstr("leaves after this pass")));

  ASSERT_THAT(job_->cluster().Start("worker", 1), IsOk());
  const auto back = [](const JobStatus& status) {
    return status.settings.workers == std::vector<int>{0, 1, 2};
  };
  EXPECT_EQ(WaitUntil(back).settings.replicas_to_aggregate, 2);
  ExpectMoreSteps();

  EXPECT_THAT(Change({.remove_worker = 0}).settings.workers, ElementsAre(1, 2));
  ExpectEnd("worker", 0, kHeld);
  ExpectMoreSteps();
}

}  // namespace
}  // namespace lockstep::testing
