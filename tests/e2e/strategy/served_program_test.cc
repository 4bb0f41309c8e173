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

// A job whose workers run the program with so many replicas each.
std::unique_ptr<TrainingJob> JobOf(int workers, int replicas,
                                   int millis_per_step = 0) {
  TrainingJob::Options options;
  options.workers = workers;
  options.worker_program = {
      LOCKSTEP_SERVED_PROGRAM,
      {"servers", absl::StrCat(replicas), absl::StrCat(kSteps),
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

// Returns the program's line of the last step.
std::string LastStepIn(const std::string& log) {
  const size_t begin = log.find("the last step has ");
  if (begin == std::string::npos) return "no last step in: " + log;
  return log.substr(begin, log.find('\n', begin) - begin);
}

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
  return LastStepIn(text.str());
}

TEST(ServedProgramTest, WorkersHaveTheBitsOfAMirroredProcess) {
  auto workers = JobOf(/*workers=*/2, /*replicas=*/1);
  ASSERT_THAT(workers->Run(), IsOk());
  const auto log = workers->cluster().ReadLog("worker", 1);
  ASSERT_THAT(log, IsOk());
  EXPECT_EQ(LastStepIn(*log), RunAlone(2));

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

// As the README starts it: with certificates that the launcher makes.
TEST(ServedProgramTest, LauncherRunsItWithoutAJobFile) {
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
                      {"--", LOCKSTEP_SERVED_PROGRAM, "servers", "1",
                       absl::StrCat(kSteps), "0"});
  options.log_path = directory.Join("log");

  EXPECT_THAT(RunProgram(options, kPatience), IsOkAndHolds(cli::TaskExit{}));

  std::ifstream file(options.log_path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(absl::StrCat("done: step ", kSteps)));
}

}  // namespace
}  // namespace lockstep::testing
