// A program that trains with a strategy as a worker of a job with servers: real
// processes.

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 200;

// A job whose workers run the program with so many replicas each, as "servers"
// or "grouped".
std::unique_ptr<TrainingJob> JobOf(int workers, int replicas,
                                   int millis_per_step = 0,
                                   const std::string& kind = "servers") {
  TrainingJob::Options options;
  options.workers = workers;
  options.worker_program = {LOCKSTEP_SERVED_PROGRAM,
                            {kind, absl::StrCat(replicas), absl::StrCat(kSteps),
                             absl::StrCat(millis_per_step)}};
  options.set = {"model.kind=external",
                 "model.hidden_units=",
                 "optimizer.kind=MOMENTUM",
                 "optimizer.momentum=0.9",
                 "learning_rate=0.01",
                 "max_part_bytes=8",
                 absl::StrCat("train_steps=", kSteps)};
  options.tls = false;  // the program takes no certificate
  return TrainingJob::Make(options);
}

// Returns the program's line that begins with `text`.
std::string LineIn(const std::string& log, const std::string& text) {
  const size_t begin = log.find(text);
  if (begin == std::string::npos) return "no " + text + " in: " + log;
  return log.substr(begin, log.find('\n', begin) - begin);
}
std::string LastStepIn(const std::string& log) {
  return LineIn(log, "the last step has ");
}
std::string LossIn(const std::string& log) {
  return LineIn(log, "the mean loss is ");
}

// Returns what the program prints with all replicas in one process.
std::string RunAlone(int replicas) {
  const TempDir directory;
  ChildProcess::Options options;
  options.program = LOCKSTEP_SERVED_PROGRAM;
  options.args = {"mirrored", absl::StrCat(replicas), absl::StrCat(kSteps),
                  "0"};
  options.environment["TF_CONFIG"] = "{}";
  options.log_path = directory.Join("log");
  EXPECT_THAT(RunProgram(options, kPatience), IsOkAndHolds(cli::TaskExit{}));
  std::ifstream file(options.log_path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ServedProgramTest, WorkersHaveTheBitsOfAMirroredProcess) {
  auto workers = JobOf(/*workers=*/2, /*replicas=*/1);
  ASSERT_THAT(workers->Run(), IsOk());
  const auto log = workers->cluster().ReadLog("worker", 1);
  ASSERT_THAT(log, IsOk());
  EXPECT_EQ(LastStepIn(*log), LastStepIn(RunAlone(2)));

  auto replicas = JobOf(/*workers=*/1, /*replicas=*/2);
  ASSERT_THAT(replicas->Run(), IsOk());
  ExpectSameBits(workers->checkpoints(), replicas->checkpoints(), kSteps);
}

TEST(ServedProgramTest, KillsOfWorkersAndServersLeaveTheBits) {
  auto undisturbed = JobOf(2, 1);
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = JobOf(2, 1, /*millis_per_step=*/5);
  ASSERT_THAT(job->StartAll(), IsOk());
  for (const auto& [task, step] :
       {std::pair{"worker", 30}, {"ps", 80}, {"chief", 120}, {"worker", 150}}) {
    ASSERT_THAT(job->WaitForStep(step), IsOk());
    ASSERT_THAT(job->cluster().Kill(task, 0), IsOk());
    ASSERT_THAT(job->cluster().Start(task, 0), IsOk());
  }
  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
}

// A kill ends the group for all, so all begin again, from the servers' state.
TEST(ServedProgramTest, AGroupOfWorkersReducesLossesAndBeginsAgainAfterAKill) {
  auto apart = JobOf(2, 1);
  ASSERT_THAT(apart->Run(), IsOk());
  auto job = JobOf(2, 1, /*millis_per_step=*/5, "grouped");
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(40), IsOk());
  ASSERT_THAT(job->cluster().Kill("worker", 0), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 0), IsOk());
  const auto ended = job->cluster().Wait("worker", 1, kPatience);
  ASSERT_THAT(ended, IsOk());
  EXPECT_EQ(ended->code, 129);
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  const std::string alone = LossIn(RunAlone(2));
  for (const int worker : {0, 1}) {
    const auto log = job->cluster().ReadLog("worker", worker);
    ASSERT_THAT(log, IsOk());
    EXPECT_EQ(LossIn(*log), alone);
  }
  ExpectSameBits(apart->checkpoints(), job->checkpoints(), kSteps);
}

// As the README starts it: with certificates that the launcher makes.
class LaunchedProgramTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LaunchedProgramTest, LauncherRunsItWithoutAJobFile) {
  const TempDir directory;
  ChildProcess::Options options;
  options.program = ProgramPath("lockstep");
  options.args = {"run",
                  "--ps",
                  "1",
                  "--workers",
                  "2",
                  "--log_dir",
                  directory.Join("logs")};
  for (const std::string& setting : {std::string("optimizer.kind=MOMENTUM"),
                                     std::string("learning_rate=0.02"),
                                     absl::StrCat("train_steps=", kSteps)}) {
    options.args.insert(options.args.end(), {"--set", setting});
  }
  options.args.insert(options.args.end(),
                      {"--", LOCKSTEP_SERVED_PROGRAM, GetParam(), "1",
                       absl::StrCat(kSteps), "0"});
  options.log_path = directory.Join("log");

  EXPECT_THAT(RunProgram(options, kPatience), IsOkAndHolds(cli::TaskExit{}));

  std::ifstream file(options.log_path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(absl::StrCat("done: step ", kSteps)));
}

INSTANTIATE_TEST_SUITE_P(Groups, LaunchedProgramTest,
                         ::testing::Values("servers", "grouped"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::testing
