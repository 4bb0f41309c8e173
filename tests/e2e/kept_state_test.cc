// The state that servers keep of a failed job, and the continuation from it.

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/e2e/undisturbed_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr cli::TaskExit kFailed = {.code = 1};

class KeptStateTest : public UndisturbedFixture {
 protected:
  static std::vector<std::string> StepsAnd(const std::string& assignment) {
    std::vector<std::string> set = Steps();
    set.push_back(assignment);
    return set;
  }

  static void ExpectAllFail(TrainingJob& job) {
    for (const auto& [name, index] : job.Tasks()) {
      EXPECT_THAT(job.cluster().Wait(name, index, kPatience),
                  IsOkAndHolds(kFailed))
          << name << " " << index;
    }
  }

  // Starts all tasks of a job that has failed, now with time to come together
  // on a busy machine.
  static void StartAgain(TrainingJob& job) {
    job.cluster().AddArgument("chief", 0, "--set=max_wait=600s");
    ASSERT_THAT(job.StartAll(), IsOk());
  }

  static std::string StateFile(const TrainingJob& job, int server) {
    for (const std::string& name : job.StateFiles()) {
      if (name.find(absl::StrCat(".ps-", server, ".")) != std::string::npos) {
        return absl::StrCat(job.state_directory(), "/", name);
      }
    }
    ADD_FAILURE() << "ps " << server << " has left no state file";
    return "";
  }
};

TEST_F(KeptStateTest, JobThatWaitsInVainForAWorkerLosesNoStep) {
  auto job = TrainingJob::Make({.set = StepsAnd("max_wait=10s")});
  ASSERT_THAT(job->StartServersLast(), IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 1) continue;
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(kFailed))
        << name << " " << index;
  }
  EXPECT_THAT(job->StateFiles(), SizeIs(2));
  const auto latest = CheckpointStore(job->checkpoints()).Latest();
  ASSERT_THAT(latest, IsOk());
  ASSERT_TRUE(latest->manifest.has_value());
  EXPECT_GE(latest->manifest->global_step, 50);

  ASSERT_NO_FATAL_FAILURE(StartAgain(*job));
  ExpectSameEnd(*job);
}

TEST_F(KeptStateTest, LastCheckpointIsTriedAgainUntilTheVolumeTakesIt) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  fs::create_directories(job->checkpoints());
  PutInTheWay(job->checkpoints());

  ASSERT_THAT(job->cluster().WaitForLog("chief", 0, "the end waits", kPatience),
              IsOk());
  const auto status = job->GetStatus();
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->state, JobState::kFinishing);
  EXPECT_THAT(status->checkpoint_trouble, HasSubstr(job->checkpoints()));
  ASSERT_FALSE(status->notices.empty());
  EXPECT_THAT(status->notices.back().text,
              AllOf(HasSubstr(absl::StrCat("step ", kSteps)),
                    HasSubstr("could not be written")));
  TakeOutOfTheWay(job->checkpoints());

  ExpectSameEnd(*job);
}

TEST_F(KeptStateTest, LastCheckpointThatCannotBeWrittenLeavesTheServersState) {
  auto job = TrainingJob::Make({.set = StepsAnd("max_wait=10s")});
  ASSERT_THAT(job->StartServersLast(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  fs::create_directories(job->checkpoints());
  PutInTheWay(job->checkpoints());

  ExpectAllFail(*job);
  EXPECT_THAT(
      job->cluster().ReadLog("chief", 0),
      IsOkAndHolds(HasSubstr("the last checkpoint could not be written")));
  EXPECT_THAT(job->StateFiles(), SizeIs(2));
  TakeOutOfTheWay(job->checkpoints());

  ASSERT_NO_FATAL_FAILURE(StartAgain(*job));
  ExpectSameEnd(*job);
}

TEST_F(KeptStateTest, StateFilesThatAreRefusedStayAllOfThem) {
  auto job = TrainingJob::Make({.set = Steps()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());
  for (const auto& [name, index] : job->Tasks()) {
    ASSERT_THAT(job->cluster().Kill(name, index), IsOk());
  }
  const std::string ours = StateFile(*job, 0);
  const std::string others = StateFile(*job, 1);
  const std::string aside = absl::StrCat(ours, ".aside");
  const auto swap = [&] {
    fs::rename(ours, aside);
    fs::rename(others, ours);
    fs::rename(aside, others);
  };
  swap();

  ASSERT_THAT(job->StartAll(), IsOk());
  ExpectAllFail(*job);
  EXPECT_TRUE(fs::exists(ours));
  EXPECT_TRUE(fs::exists(others));
  swap();
  fs::rename(ours, aside);
  fs::create_symlink(aside, ours);
  ASSERT_THAT(job->StartAll(), IsOk());
  ExpectAllFail(*job);
  EXPECT_TRUE(fs::exists(others));
  fs::rename(aside, ours);

  ASSERT_THAT(job->StartAll(), IsOk());
  ExpectSameEnd(*job);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("the servers hold step")));
}

}  // namespace
}  // namespace lockstep::testing
