// A worker written in Python from proto/README.md alone takes part in jobs of
// the real programs.

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 120;

TrainingJob::Options PythonJob(int workers) {
  TrainingJob::Options options;
  options.workers = workers;
  options.worker_program = {LOCKSTEP_PYTHON,
                            {LOCKSTEP_PYTHON_WORKER, LOCKSTEP_PYTHON_PROTOS}};
  options.set = {"model.kind=external",
                 "model.hidden_units=", absl::StrCat("train_steps=", kSteps),
                 "max_part_bytes=64",  // both servers have parts
                 "learning_rate=0.5"};
  return options;
}

std::string LogOf(TrainingJob& job, int worker) {
  const absl::StatusOr<std::string> log =
      job.cluster().ReadLog("worker", worker);
  EXPECT_OK(log);
  return log.value_or("");
}

// The same job, undisturbed: one for all tests.
const std::unique_ptr<TrainingJob>& Undisturbed() {
  static const std::unique_ptr<TrainingJob> job = [] {
    std::unique_ptr<TrainingJob> made = TrainingJob::Make(PythonJob(2));
    EXPECT_OK(made->Run());
    return made;
  }();
  return job;
}

TEST(PythonWorkerTest, TrainsToALowLoss) {
  const std::unique_ptr<TrainingJob>& job = Undisturbed();

  EXPECT_THAT(LogOf(*job, 0), ContainsRegex("ends with 0: .*loss 0\\.[0-3]"));
}

TEST(PythonWorkerTest, AKilledOneComesBackAndTheBitsAreTheSame) {
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(PythonJob(2));
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(kSteps / 3));

  ASSERT_OK(job->cluster().Kill("worker", 1));
  ASSERT_OK(job->cluster().Start("worker", 1));

  ASSERT_OK(job->cluster().WaitAllSucceed(kPatience));
  ExpectSameBits(job->checkpoints(), Undisturbed()->checkpoints(), kSteps);
}

// The lease ends while the process is stopped, so that its next heartbeat is
// answered with ABORTED.
TEST(PythonWorkerTest, OneThatWasTakenForDeadJoinsAgainAndTheBitsAreTheSame) {
  TrainingJob::Options options = PythonJob(2);
  options.set.push_back("lease=2s");
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(options);
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(kSteps / 3));

  ASSERT_OK(job->cluster().Signal("worker", 1, SIGSTOP));
  ASSERT_OK(
      job->cluster().WaitForLog("chief", 0, "worker 1 is gone", kPatience));
  ASSERT_OK(job->cluster().Signal("worker", 1, SIGCONT));

  ASSERT_OK(job->cluster().WaitAllSucceed(kPatience));
  EXPECT_THAT(LogOf(*job, 1), HasSubstr("joins again"));
  ExpectSameBits(job->checkpoints(), Undisturbed()->checkpoints(), kSteps);
}

TEST(PythonWorkerTest, PushesTheSameGradientAgainWhenAMemberDies) {
  TrainingJob::Options options = PythonJob(3);
  options.set.push_back("replicas_to_aggregate=2");
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(options);
  job->cluster().AddArgument("worker", 0,
                             absl::StrCat("--die_when_selected=", kSteps / 3));
  // The backup starts when worker 0 has died, which is a member until then: on
  // a busy machine another one might be faster in every step.
  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 2) continue;
    ASSERT_OK(job->cluster().Start(name, index));
  }

  ASSERT_OK(
      job->cluster().WaitForLog("worker", 0, "dies as a member", kPatience));
  // The successor's registration tells the chief at once that the member is
  // gone; the test does not wait for the lease.
  ASSERT_OK(job->cluster().Wait("worker", 0, kPatience).status());
  job->cluster().AddArgument("worker", 0, "--die_when_selected=-1");
  ASSERT_OK(job->StartAll());

  ASSERT_OK(job->cluster().WaitAllSucceed(kPatience));
  EXPECT_THAT(LogOf(*job, 1), HasSubstr("again, attempt 2"));
}

// After the chief's restart only the workers know the model.
TEST(PythonWorkerTest, DescribesTheModelToAChiefThatWasStarted) {
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(PythonJob(2));
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(kSteps / 3));

  ASSERT_OK(job->cluster().Kill("chief", 0));
  ASSERT_OK(job->cluster().Start("chief", 0));

  ASSERT_OK(job->cluster().WaitAllSucceed(kPatience));
  ExpectSameBits(job->checkpoints(), Undisturbed()->checkpoints(), kSteps);
}

// As after a move to a host whose clock is behind.
TEST(PythonWorkerTest, OneWhosePredecessorsClockWasAheadTakesItsPlace) {
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(PythonJob(2));
  job->cluster().AddArgument("worker", 1, "--clock_ahead=3600");
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(kSteps / 3));

  ASSERT_OK(job->cluster().Kill("worker", 1));
  job->cluster().AddArgument("worker", 1, "--clock_ahead=0");
  ASSERT_OK(job->cluster().Start("worker", 1));

  ASSERT_OK(job->cluster().WaitAllSucceed(kPatience));
  ExpectSameBits(job->checkpoints(), Undisturbed()->checkpoints(), kSteps);
}

TEST(PythonWorkerTest, WithCertificatesTheBitsAreTheSame) {
  TrainingJob::Options options = PythonJob(2);
  options.tls = true;
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(options);
  ASSERT_OK(job->Run());
  ExpectSameBits(job->checkpoints(), Undisturbed()->checkpoints(), kSteps);
}

TEST(PythonWorkerTest, TheBuiltInWorkerSaysThatItIsNotTheOneMeant) {
  TrainingJob::Options options = PythonJob(1);
  options.worker_program = {};
  const std::unique_ptr<TrainingJob> job = TrainingJob::Make(options);
  ASSERT_OK(job->StartAll());

  const absl::StatusOr<cli::TaskExit> exit =
      job->cluster().Wait("worker", 0, kPatience);

  ASSERT_OK(exit);
  EXPECT_THAT(LogOf(*job, 0), HasSubstr("model.kind is \"external\""));
}

}  // namespace
}  // namespace lockstep::testing
