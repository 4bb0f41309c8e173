// A killed and restarted chief, and processes that hang.

#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/e2e/undisturbed_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using ChiefDeathTest = UndisturbedFixture;

TEST_F(ChiefDeathTest, SuccessorGoesOnWithTheServersStep) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());

  for (int kill = 0; kill < 4; ++kill) {
    ASSERT_THAT(job->WaitForStep(20 + 80 * kill), IsOk());
    ASSERT_THAT(job->cluster().Kill("chief", 0), IsOk());
    ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
    ASSERT_THAT(job->cluster().WaitForLog("chief", 0, "it goes on from there",
                                          kPatience),
                IsOk());
  }

  ExpectSameEnd(*job);
  // No worker had to join again.
  for (int worker : {0, 1}) {
    EXPECT_THAT(job->cluster().ReadLog("worker", worker),
                IsOkAndHolds(Not(HasSubstr("joining again"))));
  }
}

// A worker that kept the old job would compute other batches than one that is
// restarted later.
TEST_F(ChiefDeathTest, WorkersLearnTheJobOfASuccessorWithAnotherJobFile) {
  auto job = TrainingJob::Make({.set = {"train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());

  ASSERT_THAT(job->cluster().Kill("chief", 0), IsOk());
  std::ofstream(job->job_file(), std::ios::app) << "micro_batches: 2\n";
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
  for (const int worker : {0, 1}) {
    EXPECT_THAT(job->cluster().WaitForLog("worker", worker, "another job file",
                                          kPatience),
                IsOk());
  }
  ASSERT_THAT(job->WaitForStep(40), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("it goes on from there")));
}

// Waits until the chief's status has so many deaths, and returns it.
absl::StatusOr<JobStatus> AwaitDeaths(TrainingJob& job, size_t deaths) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::StatusOr<JobStatus> status = job.GetStatus();
  while (absl::Now() < deadline &&
         !(status.ok() && status->deaths.size() >= deaths)) {
    absl::SleepFor(absl::Milliseconds(20));
    status = job.TryStatus();
  }
  return status;
}

// Waits until the chief has seen training for longer than the 3 s in which a
// first chief asks servers for the history of one before it. Only then does it
// give them its own.
void AwaitOwnHistory(TrainingJob& job) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const absl::StatusOr<JobStatus> status = job.TryStatus();
    if (status.ok() && status->training_time > absl::Seconds(3.5)) return;
    absl::SleepFor(absl::Milliseconds(20));
  }
  ADD_FAILURE() << "no 3.5 s of training";
}

// Waits for two heartbeats of a server: the second one shows that it has the
// answer to the first.
void AwaitHeartbeats(TrainingJob& job, const std::string& server) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Duration before = absl::InfiniteDuration();
  int heard = 0;
  while (heard < 3 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    const absl::StatusOr<JobStatus> status = job.TryStatus();
    if (!status.ok()) continue;
    for (const MemberStatus& member : status->members) {
      if (member.task != server || !member.since_heartbeat) continue;
      if (*member.since_heartbeat < before) ++heard;
      before = *member.since_heartbeat;
    }
  }
  EXPECT_EQ(heard, 3) << server;
}

TEST_F(ChiefDeathTest, SuccessorKnowsTimeAndDeaths) {
  auto job = TrainingJob::Make({.set = {"train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  const absl::StatusOr<JobStatus> before = AwaitDeaths(*job, 1);
  ASSERT_THAT(before, IsOk());
  // The servers keep it.
  AwaitOwnHistory(*job);
  for (const char* server : {"ps 0", "ps 1"}) AwaitHeartbeats(*job, server);

  ASSERT_THAT(job->cluster().Kill("chief", 0), IsOk());
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
  ASSERT_THAT(job->WaitForStep(before->step + 1), IsOk());

  const absl::StatusOr<JobStatus> after = AwaitDeaths(*job, 2);
  ASSERT_THAT(after, IsOk());
  EXPECT_GT(after->training_time, before->training_time);
  ASSERT_THAT(after->deaths, SizeIs(2));
  EXPECT_EQ(after->deaths[0].task, "worker 1");
  EXPECT_EQ(after->deaths[1].task, "chief");
}

TEST_F(ChiefDeathTest, AllProcessesAtOnce) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(100), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    ASSERT_THAT(job->cluster().Kill(name, index), IsOk());
  }
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("it goes on from there")));
}

TEST_F(ChiefDeathTest, WorkerThatHostsTheChief) {
  auto job = TrainingJob::Make({.chief = false, .set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());
  for (int kill = 0; kill < 2; ++kill) {
    ASSERT_THAT(job->WaitForStep(20 + 80 * kill), IsOk());
    ASSERT_THAT(job->cluster().Kill("worker", 0), IsOk());
    ASSERT_THAT(job->cluster().Start("worker", 0), IsOk());
  }

  ExpectSameEnd(*job);
}

TEST_F(ChiefDeathTest, WorkerThatDiesWithTheChiefIsReplacedByABackup) {
  std::vector<std::string> set = Steps();
  set.push_back("replicas_to_aggregate=2");
  set.push_back("lease=2s");
  auto job = TrainingJob::Make({.workers = 3, .set = set});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());

  ASSERT_THAT(job->cluster().Kill("chief", 0), IsOk());
  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 1) continue;
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(cli::TaskExit{}))
        << name << " " << index;
  }
}

TEST_F(ChiefDeathTest, ProcessesThatHangAndGoOnLoseNothing) {
  std::vector<std::string> set = Steps();
  set.push_back("lease=1s");
  for (const std::string name : {"ps", "chief", "worker"}) {
    auto job = TrainingJob::Make({.set = set});
    ASSERT_THAT(job->StartAll(), IsOk());
    ASSERT_THAT(job->WaitForStep(20), IsOk());

    ASSERT_THAT(job->cluster().Signal(name, 0, SIGSTOP), IsOk());
    absl::SleepFor(absl::Seconds(4));  // four leases
    ASSERT_THAT(job->cluster().Signal(name, 0, SIGCONT), IsOk());

    ExpectSameEnd(*job);
  }
}

TEST_F(ChiefDeathTest, ChiefThatComesBackAfterTheEndLearnsSo) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->Run(), IsOk());

  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("nothing to do: ")));
}

}  // namespace
}  // namespace lockstep::testing
