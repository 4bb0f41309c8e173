// Clocks of hosts may differ, and may be set while a job runs: only texts
// depend on them. libfaketime gives single processes their own clock; the
// steady clock stays that of the machine.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLibrary[] =
    "/usr/lib/" LOCKSTEP_MULTIARCH "/faketime/libfaketimeMT.so.1";
// All changes of a clock are of an hour.
constexpr absl::Duration kMuch = absl::Minutes(30);

enum class Line { kFirst, kLast };

// Returns how far the clock that wrote a line of a log is ahead of this
// process's, less the time since it was written.
absl::Duration Ahead(const std::string& log, Line which) {
  const std::vector<std::string> lines =
      absl::StrSplit(log, '\n', absl::SkipEmpty());
  if (lines.empty()) {
    ADD_FAILURE() << "the log is empty";
    return absl::ZeroDuration();
  }
  const std::string& line =
      which == Line::kFirst ? lines.front() : lines.back();
  absl::Time written;
  std::string wrong;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%dT%H:%M:%E*S",
                              line.substr(0, line.find(' ')),
                              absl::LocalTimeZone(), &written, &wrong))
      << line << ": " << wrong;
  return written - absl::Now();
}

class ClocksTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLibrary)) {
      GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: " << kLibrary
                   << " is missing: apt-get install faketime";
    }
  }

  // The task of the tested role, if possible not the one that the role needs.
  std::pair<std::string, int> Task() const {
    return {GetParam(), GetParam() == "worker" ? 1 : 0};
  }

  // Gives a task, from its next start on, a clock with an offset read from a
  // file.
  void GiveClock(TrainingJob& job, const std::pair<std::string, int>& task) {
    Set("+0");
    const auto set = [&](const char* name, const std::string& value) {
      job.cluster().SetEnvironment(task.first, task.second, name, value);
    };
    set("LD_PRELOAD", kLibrary);
    set("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    set("DONT_FAKE_MONOTONIC", "1");
    set("FAKETIME_NO_CACHE", "1");
    set("FAKETIME_TIMESTAMP_FILE", directory_.Join("clock"));
  }

  // Starts all tasks, the one with the changed clock last: gRPC's timers wait
  // for times of the kernel's clock, which libfaketime does not change, so that
  // such a process would retry a connection an hour late.
  static absl::Status StartAll(TrainingJob& job,
                               const std::pair<std::string, int>& last) {
    for (const auto& [name, index] : job.Tasks()) {
      if (std::pair(name, index) == last) continue;
      LOCKSTEP_RETURN_IF_ERROR(job.cluster().Start(name, index));
    }
    if (last.first != "chief") {
      LOCKSTEP_RETURN_IF_ERROR(job.GetStatus().status());
    }
    return job.cluster().Start(last.first, last.second);
  }

  // `offset` is in seconds, e.g. "+3600".
  void Set(const std::string& offset) {
    const std::string fresh = directory_.Join("fresh");
    std::ofstream(fresh) << offset << "\n";
    std::filesystem::rename(fresh, directory_.Join("clock"));
  }

  const TempDir directory_;
};

TEST_P(ClocksTest, TaskWhoseClockWasAheadComesBackInItsPlace) {
  auto job = TrainingJob::Make({.set = {"train_steps=500"}});
  const auto [name, index] = Task();
  GiveClock(*job, {name, index});
  Set("+3600");
  ASSERT_THAT(StartAll(*job, {name, index}), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());
  EXPECT_GT(Ahead(job->cluster().ReadLog(name, index).value(), Line::kFirst),
            kMuch);

  ASSERT_THAT(job->cluster().Kill(name, index), IsOk());
  Set("+0");
  ASSERT_THAT(job->cluster().Start(name, index), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

TEST_P(ClocksTest, ClockThatIsSetWhileTheJobRunsChangesNothing) {
  auto job = TrainingJob::Make({.set = {"train_steps=800"}});
  GiveClock(*job, Task());
  ASSERT_THAT(StartAll(*job, Task()), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());

  Set("+3600");
  ASSERT_THAT(job->WaitForStep(300), IsOk());
  Set("-3600");

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  const auto [task, number] = Task();
  EXPECT_LT(Ahead(job->cluster().ReadLog(task, number).value(), Line::kLast),
            -kMuch);
  for (const auto& [name, index] : job->Tasks()) {
    EXPECT_THAT(job->cluster().ReadLog(name, index),
                IsOkAndHolds(AllOf(Not(HasSubstr("taken for dead")),
                                   Not(HasSubstr("silent for")))))
        << name << " " << index;
  }
}

INSTANTIATE_TEST_SUITE_P(Roles, ClocksTest,
                         ::testing::Values("worker", "chief", "ps"),
                         [](const auto& info) { return info.param; });

// Two processes of one task: the running one keeps its place, for any clock of
// the other.
TEST_F(ClocksTest, SecondProcessWithAClockBehindLeavesTheFirstAlone) {
  auto job = TrainingJob::Make({.set = {"train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  const std::string address = job->cluster().Address("worker", 1).value();
  Set("-3600");
  ChildProcess::Options options;
  options.program = ProgramPath("worker");
  options.environment["TF_CONFIG"] = absl::StrReplaceAll(
      job->cluster().TfConfig("worker", 1).value(),
      {{address, absl::StrReplaceAll(address, {{"0.0.1", "0.0.2"}})}});
  options.environment["LD_PRELOAD"] = kLibrary;
  options.environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1";
  options.environment["FAKETIME_TIMESTAMP_FILE"] = directory_.Join("clock");
  options.log_path = directory_.Join("second");

  auto second = ChildProcess::Start(options);

  ASSERT_THAT(second, IsOk());
  EXPECT_THAT((*second)->Wait(kPatience),
              IsOkAndHolds(cli::TaskExit{.code = kExitFailed}));
  EXPECT_THAT((*second)->ReadLog(), HasSubstr("lives"));
  EXPECT_LT(Ahead((*second)->ReadLog(), Line::kFirst), -kMuch);
  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 20), IsOk());
  EXPECT_THAT(job->cluster().Signal("worker", 1, 0), IsOk());
}

}  // namespace
}  // namespace lockstep::testing
