// Jobs whose chief sets the gradients of a step.

#include <map>

#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Steps of 50 ms. Worker 2 needs four times as long.
class JobDriverTuningTest : public JobDriverTest {
 protected:
  JobDriverTuningTest() {
    workers = 3;
    servers = 1;
    job.train_steps = 100000;
    job.replicas_to_aggregate = 3;
    job.tune_backups = true;
  }

  // All members beat; workers report passes of which each took its time.
  void Beat(int slow_factor) {
    for (const MembershipTable::Member& member : members->Members()) {
      Progress progress;
      const bool slow = member.task.index == 2;
      progress.passes = ++passes_[member.task.index];
      progress.pass_times = {
          {absl::Milliseconds(50) * (slow ? slow_factor : 1), false}};
      const bool worker = member.task.type == TaskType::kWorker;
      ASSERT_EQ(members
                    ->Heartbeat(member.task, member.incarnation,
                                worker ? &progress : nullptr, now)
                    .ok(),
                member.state == MembershipTable::State::kAlive);
    }
  }
  // Makes steps until one ends with something else than the next step.
  Actions StepsUntilChange(int most, int slow_factor) {
    Actions actions;
    for (int i = 0; i < most; ++i) {
      now += absl::Milliseconds(50 * slow_factor);
      Beat(slow_factor);
      Tick();
      actions = Step();
      if (actions.size() != 2) return actions;
    }
    return {};
  }

  std::map<int, int64_t> passes_;
};

TEST_F(JobDriverTuningTest, SlowWorkerBecomesABackupBetweenSteps) {
  Open();
  const Actions actions = StepsUntilChange(100, 4);
  EXPECT_THAT(actions,
              AllOf(Contains("tuned to 2"), Contains(HasSubstr("recover "))));
  EXPECT_EQ(driver->settings().replicas_to_aggregate, 2);
  EXPECT_EQ(driver->settings().revision, 1);
  EXPECT_EQ(driver->wanted_settings(), driver->settings());
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("AUTO: after step "),
                                   HasSubstr("1 backup instead of 0"),
                                   HasSubstr("worker 2"))));
  Recovered(driver->step(), -1, RecoveryPlan::Action::kResume, /*redo=*/true);
  EXPECT_THAT(said, Contains(HasSubstr("replicas_to_aggregate 3 -> 2")));
}

TEST_F(JobDriverTuningTest, EqualWorkersAllCount) {
  Open();
  EXPECT_THAT(StepsUntilChange(100, 1), IsEmpty());
  EXPECT_EQ(driver->settings().replicas_to_aggregate, 3);
}

TEST_F(JobDriverTuningTest, FixedNumberStays) {
  job.tune_backups = false;
  Open();
  EXPECT_THAT(StepsUntilChange(100, 4), IsEmpty());
  EXPECT_THAT(said, Not(Contains(HasSubstr("AUTO"))));
}

TEST_F(JobDriverTuningTest, StepThatWaitsGoesOnWithTheGradientsThatAreThere) {
  Open();
  TakeResult answer;
  answer.attempt = 1;
  answer.announced_workers = {0, 1};
  answer.open_parts = 1;
  Waiting(0, answer);
  EXPECT_THAT(Pass(absl::Milliseconds(1900)), Not(Contains("tuned to 2")));
  EXPECT_THAT(Pass(absl::Milliseconds(300)),
              AllOf(Contains("tuned to 2"), Contains("recover 0")));
}

// An elastic job's workers are those that take part, not those of its file.
TEST_F(JobDriverTuningTest, ElasticJobIsTunedToo) {
  job.elastic_workers = true;
  Open();
  EXPECT_THAT(StepsUntilChange(100, 4), Contains("tuned to 2"));
}

// The tuner would keep a backup for workers that are often lost.
TEST_F(JobDriverTuningTest, WorkersThatRegisterAgainInAPauseAreNotLost) {
  workers = 8;
  job.replicas_to_aggregate = 8;
  Open();
  EXPECT_THAT(StepsUntilChange(50, 1), IsEmpty());
  RunSettings settings = driver->settings();
  for (const bool paused : {true, false}) {
    ++settings.revision;
    settings.paused = paused;
    On(SettingsWanted{settings});
    Pass(absl::Milliseconds(100));
    Recovered(driver->step(), -1, RecoveryPlan::Action::kResume);
    if (!paused) break;
    members->ExpireAll(TaskType::kWorker, "the job goes back", now);
    Pass(absl::Milliseconds(100));
    for (int worker = 0; worker < workers; ++worker) {
      Expired(0, worker);
      Join(TaskType::kWorker, worker, 2);
    }
    passes_.clear();
  }
  EXPECT_THAT(StepsUntilChange(100, 1), IsEmpty());
  EXPECT_EQ(driver->settings().replicas_to_aggregate, 8);
}

// Otherwise the job would fail, since a step needs all workers.
TEST_F(JobDriverTuningTest, WorkerThatLeavesForGoodDoesNotEndTheJob) {
  Open();
  Leave(2, LeaveCause::kCannotTakePart, "broken");
  EXPECT_THAT(Pass(absl::Milliseconds(300)),
              Not(Contains(HasSubstr("failed"))));
}

}  // namespace
}  // namespace lockstep::chief
