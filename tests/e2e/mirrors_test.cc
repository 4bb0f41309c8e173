// Jobs whose workers have mirrors: the bits of servers, and lost state that
// comes back from a peer.

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/e2e/undisturbed_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMirrored[] = "strategy.kind=MULTI_WORKER_MIRRORED";

// The undisturbed run has two servers, which share the variables.
class MirrorsTest : public UndisturbedFixture {
 protected:
  static std::unique_ptr<TrainingJob> MakeMirrored(
      std::vector<std::string> more = {}) {
    std::vector<std::string> set = Steps();
    set.push_back(kMirrored);
    set.insert(set.end(), more.begin(), more.end());
    return TrainingJob::Make({.set = set});
  }

  // Two tasks, each with a mirror; the first hosts the chief.
  static std::unique_ptr<TrainingJob> MakeHosted(bool chief_task = true) {
    return TrainingJob::Make(
        {.servers = 0,
         .workers = chief_task ? 1 : 2,
         .chief = chief_task,
         .set = {absl::StrCat("train_steps=", kSteps), kMirrored}});
  }

  static void KillAndWipe(TrainingJob& job, int server) {
    ASSERT_THAT(job.cluster().Kill("ps", server), IsOk());
    ASSERT_NO_FATAL_FAILURE(RemoveState(job, server));
    ASSERT_THAT(job.cluster().Start("ps", server), IsOk());
  }
};

TEST_F(MirrorsTest, EndWithTheBitsOfServers) {
  auto job = MakeMirrored();
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
}

TEST_F(MirrorsTest, WithoutSharedMemoryTheBitsAreTheSame) {
  auto job = TrainingJob::Make(
      {.set = {absl::StrCat("train_steps=", kSteps), kMirrored},
       .more_args = {"--shared_memory=off"}});
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
}

TEST_F(MirrorsTest, KilledMirrorsAndWorkersChangeNoBit) {
  auto job = MakeMirrored();
  ASSERT_THAT(job->StartAll(), IsOk());

  int64_t step = 20;
  for (const auto& [name, index] : std::vector<std::pair<std::string, int>>{
           {"ps", 0}, {"worker", 1}, {"ps", 1}, {"chief", 0}, {"worker", 0}}) {
    ASSERT_THAT(job->WaitForStep(step), IsOk());
    ASSERT_THAT(job->cluster().Kill(name, index), IsOk());
    ASSERT_THAT(job->cluster().Start(name, index), IsOk());
    step += 60;
  }

  ExpectSameEnd(*job);
}

TEST_F(MirrorsTest, LostStateComesBackFromTheOtherMirror) {
  auto job = MakeMirrored();
  ASSERT_THAT(job->StartAll(), IsOk());

  for (const int server : {1, 0}) {
    ASSERT_THAT(job->WaitForStep(server == 1 ? 40 : 150), IsOk());
    ASSERT_NO_FATAL_FAILURE(KillAndWipe(*job, server));
  }

  ExpectSameEnd(*job);
  EXPECT_THAT(
      job->ChiefLog(),
      AllOf(HasSubstr("ps 1 has lost its state: takes the state of step"),
            HasSubstr("ps 0 has lost its state: takes the state of step"),
            HasSubstr(" 0 committed steps repeated"),
            Not(HasSubstr("all servers go back"))));
}

TEST_F(MirrorsTest, WithoutAnyStateAllGoBackToTheCheckpoint) {
  auto job = MakeMirrored({"checkpoint.every_steps=30"});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());

  for (const int server : {0, 1}) {
    ASSERT_THAT(job->cluster().Kill("ps", server), IsOk());
  }
  std::filesystem::remove_all(job->state_directory());
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(),
              HasSubstr("resumed from the checkpoint of step "));
}

// Each worker's process has its mirror; the first hosts the chief, too.
TEST_F(MirrorsTest, HostedInWorkersThatAreKilledTheyChangeNoBit) {
  for (const bool chief_task : {false, true}) {
    auto job = MakeHosted(chief_task);
    ASSERT_THAT(job->StartAll(), IsOk());
    int64_t step = 20;
    for (const auto& [name, index] : job->Tasks()) {
      for (const bool wiped : {false, true}) {
        ASSERT_THAT(job->WaitForStep(step), IsOk());
        ASSERT_THAT(job->cluster().Kill(name, index), IsOk());
        const int rank = name == "worker" && chief_task ? index + 1 : index;
        if (wiped) {
          ASSERT_NO_FATAL_FAILURE(RemoveState(*job, rank));
        }
        ASSERT_THAT(job->cluster().Start(name, index), IsOk());
        step += 60;
      }
    }

    ExpectSameEnd(*job);
  }
}

// With two workers both orders give the same bits.
TEST_F(MirrorsTest, TheOrderOfARingIsKeptWhenProcessesDie) {
  const auto make = [](const std::string& order,
                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> set = {
        "train_steps=150", kMirrored,
        absl::StrCat("strategy.communication.order=", order)};
    set.insert(set.end(), more.begin(), more.end());
    return TrainingJob::Make(
        {.servers = 0, .workers = 3, .chief = false, .set = set});
  };
  auto rank = make("RANK");
  ASSERT_THAT(rank->Run(), IsOk());
  auto ring = make("RING");
  ASSERT_THAT(ring->Run(), IsOk());
  EXPECT_NE(ReadCheckpoint(ring->checkpoints(), 150, "model.safetensors"),
            ReadCheckpoint(rank->checkpoints(), 150, "model.safetensors"));

  // One ring over all variables has other chunks than rings of their own.
  auto packed = make("RING", {"strategy.communication.bytes_per_pack=0"});
  ASSERT_THAT(packed->Run(), IsOk());
  EXPECT_NE(ReadCheckpoint(packed->checkpoints(), 150, "model.safetensors"),
            ReadCheckpoint(ring->checkpoints(), 150, "model.safetensors"));

  auto disturbed = make("RING");
  ASSERT_THAT(disturbed->StartAll(), IsOk());
  for (const int worker : {1, 2}) {
    ASSERT_THAT(disturbed->WaitForStep(20 + 40 * worker), IsOk());
    ASSERT_THAT(disturbed->cluster().Kill("worker", worker), IsOk());
    ASSERT_THAT(disturbed->cluster().Start("worker", worker), IsOk());
  }
  ASSERT_THAT(disturbed->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(ring->checkpoints(), disturbed->checkpoints(), 150);
}

// Their copies are all that is left of the job: there is no checkpoint.
TEST_F(MirrorsTest, AllKilledAtOnceGoOnWithTheirCopies) {
  auto job = MakeHosted();
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(150), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    ASSERT_THAT(job->cluster().Kill(name, index), IsOk());
  }
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectSameEnd(*job);
  EXPECT_THAT(job->ChiefLog(),
              ::testing::ContainsRegex(
                  "the servers hold step (1[5-9]|[23][0-9])[0-9] of this job"));
}

TEST_F(MirrorsTest, StoppedWorkerStopsTheJobWithACheckpoint) {
  auto job = TrainingJob::Make(
      {.servers = 0, .chief = false, .set = {"train_steps=100000", kMirrored}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());

  ASSERT_THAT(job->cluster().Signal("worker", 1, SIGTERM), IsOk());

  for (const int worker : {0, 1}) {
    ASSERT_THAT(job->cluster().Wait("worker", worker, kPatience),
                IsOkAndHolds(cli::TaskExit{.code = kExitStopped}));
  }
  EXPECT_THAT(job->cluster().ReadLog("worker", 0).value_or(""),
              HasSubstr("checkpoint of step"));
}

// The other mirror has all that the last checkpoint needs.
TEST_F(MirrorsTest, AStopWritesTheCheckpointWithoutAMirrorThatIsAway) {
  auto job =
      TrainingJob::Make({.set = {"train_steps=100000", "lease=2s", kMirrored}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());
  ASSERT_THAT(job->cluster().Kill("ps", 1), IsOk());
  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
  cli::CoordinatorClient chief(job->cluster().Address("chief", 0).value());

  ASSERT_THAT(chief.Stop("enough", absl::Seconds(20), /*hold=*/false), IsOk());

  EXPECT_THAT(job->cluster().Wait("chief", 0, kPatience),
              IsOkAndHolds(cli::TaskExit{.code = kExitStopped}));
  EXPECT_THAT(job->ChiefLog(), AllOf(HasSubstr("the job stops without them"),
                                     HasSubstr("checkpoint of step"),
                                     Not(HasSubstr("could not be written"))));
}

// Whether a process hears of it as a worker or as a mirror first. Several jobs,
// since either may happen.
TEST_F(MirrorsTest, AJobThatIsStoppedForGoodAsksForNoRestart) {
  for (int i = 0; i < 3; ++i) {
    auto job = TrainingJob::Make({.servers = 0,
                                  .chief = false,
                                  .set = {"train_steps=100000", kMirrored}});
    ASSERT_THAT(job->StartAll(), IsOk());
    ASSERT_THAT(job->WaitForStep(20), IsOk());
    cli::CoordinatorClient chief(job->cluster().Address("worker", 0).value());

    ASSERT_THAT(chief.Stop("enough", absl::Seconds(20), /*hold=*/true), IsOk());

    for (const int worker : {0, 1}) {
      EXPECT_THAT(job->cluster().Wait("worker", worker, kPatience),
                  IsOkAndHolds(cli::TaskExit{.code = kExitHeld}));
    }
  }
}

// The program has a loop of its own, and passes without a gradient of some
// variables.
TEST(ProgramTest, HasTheSameBitsUnderEachStrategy) {
  TrainingJob::Options options = {.servers = 1, .set = {"train_steps=300"}};
  UseProgram(options);
  auto servers = TrainingJob::Make(options);
  ASSERT_THAT(servers->Run(), IsOk());
  options.servers = 2;
  options.set.push_back(kMirrored);
  // So slow that the job lasts until the kills.
  options.worker_program.args = {"--pass_ms=5"};
  auto mirrors = TrainingJob::Make(options);
  options.worker_program.args.clear();
  ASSERT_THAT(mirrors->StartAll(), IsOk());
  ASSERT_THAT(mirrors->WaitForStep(50), IsOk());
  for (const char* task : {"ps", "worker"}) {
    ASSERT_THAT(mirrors->cluster().Kill(task, 1), IsOk());
    if (task == std::string("ps")) RemoveState(*mirrors, 1);
    ASSERT_THAT(mirrors->cluster().Start(task, 1), IsOk());
  }
  ASSERT_THAT(mirrors->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(servers->checkpoints(), mirrors->checkpoints(), 300);

  options.servers = options.workers = 1;
  std::vector<std::unique_ptr<TrainingJob>> alone;
  for (const char* kind : {"PARAMETER_SERVER", "ONE_DEVICE", "MIRRORED"}) {
    options.set.back() = absl::StrCat("strategy.kind=", kind);
    alone.push_back(TrainingJob::Make(options));
    ASSERT_THAT(alone.back()->Run(), IsOk()) << kind;
    ExpectSameBits(alone[0]->checkpoints(), alone.back()->checkpoints(), 300);
  }
}

}  // namespace
}  // namespace lockstep::testing
