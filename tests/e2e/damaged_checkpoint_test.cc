// Damaged checkpoints: a job goes on from a whole one, or names the fix.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/checkpoint/step_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/e2e/undisturbed_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DamagedCheckpointTest : public UndisturbedFixture {
 protected:
  // Settings of a job that ends at `steps`, with a checkpoint every 50 steps.
  static std::vector<std::string> Until(int64_t steps) {
    return {absl::StrCat("train_steps=", steps), "checkpoint.every_steps=50",
            "checkpoint.keep=100"};
  }

  // Trains one job after the other to each of these steps. The last checkpoint
  // of a job is always written; one that is due meanwhile is left out where the
  // one before is still being written, as on a slow disk.
  void TrainTo(const std::vector<int64_t>& ends) {
    for (const int64_t end : ends) {
      auto job = TrainingJob::Make(
          {.set = Until(end),
           .checkpoints = first_ == nullptr ? "" : first_->checkpoints()});
      ASSERT_THAT(job->Run(), IsOk());
      if (first_ == nullptr) first_ = std::move(job);
    }
  }

  static std::string FileOf(const TrainingJob& job, int64_t step,
                            const std::string& name = kModelFile) {
    return absl::StrCat(job.checkpoints(), "/", StepDirectoryName(step), "/",
                        name);
  }

  // The last bit belongs to the values, the first to the header's length.
  static void FlipBit(const std::string& path, bool last = true) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto position = last ? std::streamoff(fs::file_size(path)) - 1 : 0;
    file.seekg(position);
    const int byte = file.get();
    file.seekp(position);
    file.put(static_cast<char>(byte ^ 1));
    ASSERT_TRUE(file.flush().good()) << path;
  }

  // Starts a job, and kills ps 1 when there are two checkpoints, so that a
  // whole one is left when `latest` is damaged.
  static void KillServerAfterTwoCheckpoints(std::unique_ptr<TrainingJob>& job,
                                            int64_t& latest) {
    std::vector<std::string> set = Steps();
    set.push_back("checkpoint.every_steps=50");
    job = TrainingJob::Make({.set = set});
    ASSERT_THAT(job->StartAll(), IsOk());
    const absl::Time deadline = absl::Now() + kPatience;
    while (ListStepDirectories(job->checkpoints())->size() < 2) {
      ASSERT_LT(absl::Now(), deadline) << job->ChiefLog();
      absl::SleepFor(absl::Milliseconds(1));
    }
    job->cluster().Kill("ps", 1).IgnoreError();  // it may have ended
    // Logged: the chief has noted the files as it wrote them. A bit that flips
    // before that, in a directory that has just its name, counts as written.
    do {
      ASSERT_LT(absl::Now(), deadline) << job->ChiefLog();
      latest = ListStepDirectories(job->checkpoints())->back();
    } while (!absl::StrContains(job->ChiefLog(),
                                absl::StrCat("checkpoint of step ", latest)));
  }

  static void ExpectFailure(TrainingJob& job) {
    for (const auto& [name, index] : job.Tasks()) {
      EXPECT_THAT(job.cluster().Wait(name, index, kPatience),
                  IsOkAndHolds(cli::TaskExit{.code = 1}))
          << name << " " << index;
    }
  }

  std::unique_ptr<TrainingJob> first_;  // its folder has the checkpoints
};

TEST_F(DamagedCheckpointTest, AFlippedBitAtTheStartCostsTheStepsSinceTheLast) {
  ASSERT_NO_FATAL_FAILURE(TrainTo({100, 150, 200}));
  FlipBit(FileOf(*first_, 200));
  FlipBit(FileOf(*first_, 150), /*last=*/false);

  auto job =
      TrainingJob::Make({.set = Steps(), .checkpoints = first_->checkpoints()});
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(),
              AllOf(HasSubstr("the checkpoint of step 200 is damaged"),
                    HasSubstr("is of step 100, 100 steps before it"),
                    HasSubstr("resumed from the checkpoint of step 100 in ")));
  EXPECT_TRUE(fs::exists(job->checkpoints() + "/damaged-step-00000200"));
}

TEST_F(DamagedCheckpointTest, AFlippedBitIsPassedOverWhenAServerLostItsState) {
  std::unique_ptr<TrainingJob> job;
  int64_t latest = kSteps;
  // On a slow disk the second one may be that of the end: then in a new job.
  for (int jobs = 0; latest == kSteps; ++jobs) {
    ASSERT_LT(jobs, 4) << "no job has had two checkpoints before its end";
    ASSERT_NO_FATAL_FAILURE(KillServerAfterTwoCheckpoints(job, latest));
  }
  FlipBit(FileOf(*job, latest));
  for (const std::string& name : job->StateFiles()) {
    if (name.find(".ps-1.") == std::string::npos) continue;
    fs::remove(absl::StrCat(job->state_directory(), "/", name));
  }
  ASSERT_THAT(job->cluster().Start("ps", 1), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(), HasSubstr("is damaged and passed over"));
}

TEST_F(DamagedCheckpointTest, WhereAllAreDamagedTheJobEndsUnlessItIsToBeFresh) {
  ASSERT_NO_FATAL_FAILURE(TrainTo({50, 100}));
  FlipBit(FileOf(*first_, 50));
  fs::remove(FileOf(*first_, 100, kOptimizerFile));
  auto job =
      TrainingJob::Make({.set = Steps(), .checkpoints = first_->checkpoints()});

  ASSERT_THAT(job->StartAll(), IsOk());
  ExpectFailure(*job);
  EXPECT_THAT(job->ChiefLog(),
              AllOf(HasSubstr("none is whole"), HasSubstr("--fresh")));
  EXPECT_THAT(ListStepDirectories(job->checkpoints()),
              IsOkAndHolds(ElementsAre(50, 100)));

  job->cluster().AddArgument("chief", 0, "--fresh");
  ASSERT_THAT(job->StartAll(), IsOk());
  ExpectSameEnd(*job);
  EXPECT_TRUE(fs::exists(job->checkpoints() + "/set-aside-step-00000100"));
}

TEST_F(DamagedCheckpointTest, ANewerFormatIsRefused) {
  ASSERT_NO_FATAL_FAILURE(TrainTo({100}));
  std::ofstream(FileOf(*first_, 100, kManifestFile))
      << R"({"format_version": 99})";
  auto job =
      TrainingJob::Make({.set = Steps(), .checkpoints = first_->checkpoints()});

  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectFailure(*job);
  EXPECT_THAT(job->ChiefLog(), HasSubstr("format_version is 99"));
}

TEST_F(DamagedCheckpointTest, AnOlderCheckpointCanBeNamed) {
  ASSERT_NO_FATAL_FAILURE(TrainTo({100, 150, 200}));
  auto job =
      TrainingJob::Make({.set = Steps(), .checkpoints = first_->checkpoints()});
  job->cluster().AddArgument("chief", 0, "--from=100");

  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(),
              AllOf(HasSubstr("resumed from the checkpoint of step 100 in "),
                    Not(HasSubstr("damaged"))));
  EXPECT_TRUE(fs::exists(job->checkpoints() + "/set-aside-step-00000150"));
}

}  // namespace
}  // namespace lockstep::testing
