#include "chief/job/training.h"

#include <variant>

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using Turn = Training::Turn;

class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest() {
    steps_.Open(0, 1, steps_.servers());
    checkpoints_.Begin(0, -1, context_.now);
    training_.Begin();
  }
  template <typename Action>
  int Count() const {
    int count = 0;
    for (const JobAction& action : context_.out) {
      count += std::holds_alternative<Action>(action);
    }
    return count;
  }

  JobConfig job_ = [] {
    JobConfig job;
    job.train_steps = 3;
    job.replicas_to_aggregate = job.total_num_replicas = 1;
    job.checkpoint.directory = "/checkpoints";
    return job;
  }();
  MembershipTable members_{{}, absl::Seconds(2)};
  JobContext context_{job_, members_, absl::UnixEpoch() + absl::Hours(1)};
  StepDriver steps_{job_, 1};
  CheckpointDriver checkpoints_{job_};
  MemberDeaths deaths_{context_, steps_};
  Training training_{context_, steps_, checkpoints_, deaths_, 1};
};

TEST_F(TrainingTest, StepsEndAtTheLastOne) {
  EXPECT_EQ(training_.NextStep(), Turn::kGoesOn);
  EXPECT_EQ(Count<Take>(), 1);
  context_.now += absl::Seconds(1);
  TakeResult answer;
  answer.prepared = true;
  answer.committed_step = 3;
  EXPECT_EQ(training_.OnTake({1, 0, 0, {}, answer}), Turn::kEnded);
  EXPECT_TRUE(training_.result().ok());
}

TEST_F(TrainingTest, ChangedSettingsComeBeforeTheNextStep) {
  RunSettings wanted = context_.settings.now();
  wanted.revision = 1;
  context_.settings.Want(wanted);
  steps_.RestartTime(context_.now);
  EXPECT_EQ(training_.NextStep(), Turn::kNewSettings);
  EXPECT_EQ(training_.OnTick(), Turn::kNewSettings);
  EXPECT_EQ(training_.BeginStep(), Turn::kGoesOn);
}

TEST_F(TrainingTest, StopWaitsForTheStepAtHandAndSaysSo) {
  EXPECT_EQ(training_.NextStep(), Turn::kGoesOn);
  context_.now += absl::Seconds(1);
  context_.WantStop(StoppedStatus("enough", /*hold=*/false));
  const absl::Time wanted = context_.now;
  context_.now += absl::Milliseconds(500);
  context_.WantStop(StoppedStatus("at once", /*hold=*/true));
  EXPECT_EQ(training_.OnTick(), Turn::kGoesOn);
  const auto& report = std::get<JobReport>(context_.out.back());
  const StatusTable::Wait& first = std::get<Waits>(report).waits.front();
  EXPECT_EQ(first.owner, "the stop");
  EXPECT_EQ(first.waits_for, "step 1 to end, 10s after its start at most");
  EXPECT_EQ(first.since, wanted);
}

TEST_F(TrainingTest, InterruptedCopyBeginsNoStep) {
  steps_.Open(1, 1, steps_.servers());
  checkpoints_.Want();
  training_.NextStep();
  EXPECT_EQ(Count<BeginSnapshot>(), 1);
  training_.Interrupt();
  training_.OnCopied();
  EXPECT_EQ(Count<Take>(), 0);
}

TEST_F(TrainingTest, CopyIsFollowedByTheStep) {
  steps_.Open(1, 1, steps_.servers());
  checkpoints_.Want();
  training_.NextStep();
  training_.OnCopied();
  EXPECT_EQ(Count<Take>(), 1);
  training_.OnCopied();
  EXPECT_EQ(Count<Take>(), 1);
}

// The chief before has died in the midst of the next step.
TEST_F(TrainingTest, StepThatCannotBeCopiedAnyMoreIsFollowedByTheNext) {
  job_.checkpoint.every_steps = 2;
  checkpoints_.Begin(0, -1, context_.now);
  steps_.Open(2, 1, steps_.servers());
  EXPECT_EQ(training_.NextStep(), Turn::kGoesOn);
  ASSERT_EQ(Count<BeginSnapshot>(), 1);

  checkpoints_.OnBegun({2, absl::DataLossError("gone")}, /*quiet=*/false,
                       context_.now, context_.out);
  training_.OnCopied();

  EXPECT_EQ(Count<Take>(), 1);
  EXPECT_EQ(training_.BeginStep(), Turn::kGoesOn);
  EXPECT_EQ(Count<BeginSnapshot>(), 1);
  EXPECT_TRUE(checkpoints_.IsToBegin(4, context_.now));
}

TEST_F(TrainingTest, CopyMayTakeLongerThanAStep) {
  steps_.Open(1, 1, steps_.servers());
  checkpoints_.Want();
  training_.NextStep();
  context_.now += job_.max_wait;
  EXPECT_EQ(training_.OnTick(), Turn::kGoesOn);
  const auto& report = std::get<JobReport>(context_.out.back());
  EXPECT_EQ(std::get<Waits>(report).waits.front().waits_for,
            "the servers to copy step 1 for its checkpoint");

  training_.OnCopied();
  EXPECT_EQ(training_.OnTick(), Turn::kGoesOn);
  context_.now += job_.max_wait;
  EXPECT_EQ(training_.OnTick(), Turn::kEnded);
  EXPECT_EQ(training_.result().code(), absl::StatusCode::kDeadlineExceeded);
}

// A step of eight micro-batches; a push takes as long as a micro-batch.
TEST(TrainingOfPushesTest, ChiefChoosesMicroBatchesOfAPush) {
  JobConfig job;
  job.train_steps = 1000;
  job.work = Work::kShared;
  job.micro_batches_per_step = job.replicas_to_aggregate = 8;
  job.total_num_replicas = 1;
  const TaskId worker{TaskType::kWorker, 0};
  MembershipTable members({worker}, absl::Hours(1));
  JobContext context(job, members, absl::UnixEpoch() + absl::Hours(1));
  ASSERT_TRUE(members.Register(worker, 1, context.now).ok());
  StepDriver steps(job, 1);
  CheckpointDriver checkpoints(job);
  checkpoints.Begin(0, -1, context.now);
  MemberDeaths deaths(context, steps);
  Training training(context, steps, checkpoints, deaths, 1);
  Progress progress;
  for (int64_t step = 8; step <= 16; step += 8) {
    EXPECT_FALSE(context.settings.ToChange());
    steps.Open(step, 8, steps.servers());
    progress.micro_batches = progress.pushes = 8 * step;
    progress.micro_batches_time = progress.pushes_time =
        step * absl::Seconds(1);
    ASSERT_TRUE(members.Heartbeat(worker, 1, &progress, context.now).ok());
    training.NextStep();
  }

  // Two pushes for the worker.
  EXPECT_EQ(context.settings.wanted().replicas_to_aggregate, 2);
  EXPECT_EQ(std::get<Tuned>(context.out.back()).replicas, 2);
}

TEST(TrainingOfPushesTest, CheckpointThatIsWrittenIsNotInterrupted) {
  JobConfig job;
  job.train_steps = 1000;
  job.work = Work::kShared;
  job.micro_batches_per_step = job.replicas_to_aggregate = 8;
  job.total_num_replicas = 8;
  job.checkpoint.directory = "/checkpoints";
  MembershipTable members({}, absl::Hours(1));
  JobContext context(job, members, absl::UnixEpoch() + absl::Hours(1));
  StepDriver steps(job, 1);
  CheckpointDriver checkpoints(job);
  checkpoints.Begin(0, -1, context.now);
  MemberDeaths deaths(context, steps);
  Training training(context, steps, checkpoints, deaths, 1);
  // Two micro-batches a push are too many for eight workers.
  RunSettings wanted = context.settings.now();
  wanted.replicas_to_aggregate = 4;
  context.settings.Want(wanted);
  context.settings.Apply();
  checkpoints.Start(8, 1, context.out);
  checkpoints.OnBegun({8, absl::OkStatus()}, false, context.now, context.out);
  steps.Open(8, 4, steps.servers());

  EXPECT_EQ(training.NextStep(), Turn::kGoesOn);
  EXPECT_FALSE(context.settings.ToChange());

  checkpoints.OnDone({8, absl::OkStatus()}, context.now, context.out);
  EXPECT_EQ(training.NextStep(), Turn::kNewSettings);
}

// Two servers.
class TrainingOfServersTest : public TrainingTest {
 protected:
  TrainingOfServersTest() { pair_.Open(0, 1, pair_.servers()); }

  // Returns what follows the commit.
  Turn Step(int64_t step) {
    TakeResult answer;
    answer.prepared = true;
    answer.attempt = 4;
    for (const int server : {0, 1}) {
      EXPECT_EQ(of_pair_.OnTake({1, server, step, {}, answer}), Turn::kGoesOn);
    }
    return of_pair_.OnCommit({1, step + 1, 4});
  }

  StepDriver pair_{job_, 2};
  Training of_pair_{context_, pair_, checkpoints_, deaths_, 2};
};

TEST_F(TrainingOfServersTest, CommitThatNoTakeFollowsIsToldToTheOtherServers) {
  EXPECT_EQ(of_pair_.NextStep(), Turn::kGoesOn);
  EXPECT_EQ(Step(0), Turn::kGoesOn);
  EXPECT_EQ(Step(1), Turn::kGoesOn);
  EXPECT_EQ(Count<TellCommit>(), 0);  // takes did

  EXPECT_EQ(Step(2), Turn::kEnded);  // the last one

  ASSERT_EQ(Count<TellCommit>(), 1);
  const auto& told = std::get<TellCommit>(context_.out.back());
  EXPECT_EQ(told.step, 3);
  EXPECT_EQ(told.attempt, 4);
}

TEST_F(TrainingOfServersTest, PausedJobHasItsLastCommitToldToAllServers) {
  of_pair_.NextStep();
  RunSettings paused = context_.settings.now();
  paused.paused = true;
  context_.settings.Want(paused);
  context_.settings.Apply();

  EXPECT_EQ(Step(0), Turn::kGoesOn);

  EXPECT_EQ(Count<TellCommit>(), 1);
}

TEST_F(TrainingTest, NewerChiefIsToldApartFromAFailure) {
  training_.NextStep();
  EXPECT_EQ(training_.OnTake({1, 0, 0, absl::AbortedError("x")}),
            Turn::kReplaced);
  EXPECT_EQ(training_.OnTake({1, 0, 0, absl::InternalError("x")}),
            Turn::kEnded);
  EXPECT_EQ(training_.result(), absl::InternalError("ps 0: x"));
}

}  // namespace
}  // namespace lockstep::chief
