// The end of a job of mirrors that is not elastic: its steps need all mirrors,
// and its last checkpoint any that has them, with mirror 0.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/chief/job/job_driver_fixture.h"

namespace lockstep::chief {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kResume = RecoveryPlan::Action::kResume;

class JobDriverMirrorsEndTest : public JobDriverTest {
 protected:
  JobDriverMirrorsEndTest() {
    servers = workers = 3;
    job.replicas_to_aggregate = 3;
    job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
    job.checkpoint.directory = "/checkpoints";
  }

  // Mirror 2 and its worker are away, and the job waits for them.
  void Lose2() {
    Open();
    Step();
    ASSERT_THAT(PassWithout(2, 3 * job.lease), Not(Contains("recover 1")));
  }

  // Writes the checkpoint of step `step`; returns all actions.
  Actions Write(int64_t step) {
    Actions all = Closed();
    for (const Actions& more : {Copied(step), Written(step)}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
};

TEST_F(JobDriverMirrorsEndTest, StopWritesTheCheckpointWithoutAMirrorAway) {
  Lose2();
  Stop();

  EXPECT_THAT(PassWithout(2, absl::Milliseconds(200)), Contains("recover 1"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_THAT(said, Contains(HasSubstr("the job stops without them")));
  const Actions opened = Recovered(1, -1, kResume, true);
  EXPECT_THAT(opened, Contains("close tokens"));
  // Its workers stay those of the job, for the next start.
  EXPECT_THAT(opened, Not(Contains("take out 2 (away)")));

  EXPECT_THAT(Write(1), Contains("all is saved"));
}

TEST_F(JobDriverMirrorsEndTest, StopDuringAChangeOfSettingsWaitsForNoMirror) {
  Open();
  Step();
  RunSettings slower = driver->settings();
  ++slower.revision;
  slower.learning_rate_scale = 0.5;
  On(SettingsWanted{slower});
  ASSERT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 1"));
  PassWithout(2, job.lease + absl::Seconds(1));  // in the round
  RoundFailed(absl::UnavailableError("ps 2: gone"));
  Stop();
  ASSERT_THAT(PassWithout(2, absl::Seconds(2)), Contains("recover 1"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1));

  const Actions opened = Recovered(1, -1, kResume, true);

  EXPECT_THAT(opened, Contains("close tokens"));
  EXPECT_THAT(opened, Not(Contains("take 0 at 1")));
  EXPECT_THAT(Write(1), Contains("all is saved"));
}

TEST_F(JobDriverMirrorsEndTest, StopCannotDoWithoutTheMirrorThatCommits) {
  Open();
  Step();
  PassWithout(0, 2 * job.lease);
  Stop();

  EXPECT_THAT(PassWithout(0, 2 * job.lease),
              Contains(HasSubstr("failed: enough, while ps 0 (gone) is away")));
}

TEST_F(JobDriverMirrorsEndTest, JobThatIsDoneWaitsALeaseForAMirror) {
  job.train_steps = 1;
  Open();
  ASSERT_THAT(Step(), Contains("close tokens"));
  PassWithout(2, job.lease + absl::Seconds(1));
  Closed(absl::UnavailableError("ps 2: gone"));

  EXPECT_THAT(PassWithout(2, job.lease - absl::Seconds(1)),
              Not(Contains("recover 1")));
  EXPECT_THAT(PassWithout(2, absl::Seconds(3)), Contains("recover 1"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_THAT(Recovered(1, -1, kResume), Contains("close tokens"));
  EXPECT_THAT(Write(1), Contains("all is saved"));
}

// Its steps need the mirror again, where the others had lost some.
TEST_F(JobDriverMirrorsEndTest, StepsThatAreMadeAgainNeedAllMirrors) {
  job.train_steps = 1;
  Open();
  Step();
  PassWithout(2, job.lease + absl::Seconds(1));
  Closed(absl::UnavailableError("ps 2: gone"));
  ASSERT_THAT(PassWithout(2, 2 * job.lease), Contains("recover 1"));

  const Actions lost = Recovered(0, 0, RecoveryPlan::Action::kGoBack);

  EXPECT_THAT(lost, Contains("training"));
  EXPECT_THAT(lost, Not(Contains("take 0 at 0")));
  EXPECT_THAT(PassWithout(2, 3 * job.lease), Not(Contains("recover 0")));
  Join(TaskType::kPs, 2, 2);
  EXPECT_THAT(Pass(absl::Milliseconds(100)), Contains("recover 0"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1, 2));
  EXPECT_THAT(Recovered(0, 0, kResume), Contains("take 2 at 0"));
}

TEST_F(JobDriverMirrorsEndTest, JobThatFailsForAMirrorWritesTheOthersState) {
  Lose2();

  EXPECT_THAT(PassWithout(2, job.max_wait), Contains("recover 1"));
  EXPECT_THAT(request.servers, ElementsAre(0, 1));
  EXPECT_THAT(Recovered(1, -1, kResume, true), Contains("close tokens"));
  EXPECT_THAT(Write(1), Contains(HasSubstr("failed: the job waited longer than "
                                           "max_wait (1m) for ps 2 (gone)")));
  EXPECT_THAT(said, Contains(HasSubstr("a checkpoint holds step 1")));
}

TEST_F(JobDriverMirrorsEndTest, JobThatFailsForMirror0EndsAtOnce) {
  Open();
  Step();

  EXPECT_THAT(PassWithout(0, job.lease + job.max_wait + absl::Seconds(1)),
              Contains(HasSubstr("failed: the job waited longer than max_wait "
                                 "(1m) for ps 0 (gone)")));
}

TEST_F(JobDriverMirrorsEndTest, FailureOfTheRoundKeepsTheReasonOfTheJob) {
  Lose2();
  ASSERT_THAT(PassWithout(2, job.max_wait), Contains("recover 1"));

  EXPECT_THAT(RoundFailed(absl::InternalError("ps 1: broken")),
              Contains(HasSubstr("failed: the job waited longer than")));
  EXPECT_THAT(said, Contains(HasSubstr("no checkpoint of step 1 before the job "
                                       "fails: ps 1: broken")));
}

}  // namespace
}  // namespace lockstep::chief
