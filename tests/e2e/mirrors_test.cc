// Jobs whose workers have mirrors: the bits of servers, and lost state that
// comes back from a peer.

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::string ChiefLog(TrainingJob& job) {
  return job.cluster().ReadLog("chief", 0).value_or("");
}

// The state file of a ps, of the one job in the directory.
void RemoveState(const TrainingJob& job, int server) {
  const std::string end = absl::StrCat(".ps-", server, ".state");
  int removed = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(job.state_directory())) {
    if (entry.path().filename().string().find(end) == std::string::npos) {
      continue;
    }
    removed += std::filesystem::remove(entry.path()) ? 1 : 0;
  }
  EXPECT_GE(removed, 1) << "no state of ps " << server;
}

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
      ChiefLog(*job),
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
}

// Each worker's process has its mirror; the first hosts the chief, too.
TEST_F(MirrorsTest, HostedInWorkersThatAreKilledTheyChangeNoBit) {
  for (const bool chief_task : {false, true}) {
    auto job = TrainingJob::Make(
        {.servers = 0,
         .workers = chief_task ? 1 : 2,
         .chief = chief_task,
         .set = {absl::StrCat("train_steps=", kSteps), kMirrored}});
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

TEST_F(MirrorsTest, StoppedWorkerStopsTheJobWithACheckpoint) {
  auto job = TrainingJob::Make(
      {.servers = 0, .chief = false, .set = {"train_steps=100000", kMirrored}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());

  ASSERT_THAT(job->cluster().Signal("worker", 1, SIGTERM), IsOk());

  for (const int worker : {0, 1}) {
    auto process = job->cluster().Process("worker", worker);
    ASSERT_THAT(process, IsOk());
    ASSERT_THAT((*process)->Wait(kPatience), IsOk());
  }
  EXPECT_THAT(job->cluster().ReadLog("worker", 0).value_or(""),
              HasSubstr("checkpoint of step"));
}

TEST_F(MirrorsTest, CheckpointOfOneKindGoesOnUnderTheOther) {
  for (const char* kind : {kMirrored, "strategy.kind=PARAMETER_SERVER"}) {
    const bool mirrored_first = kind == kMirrored;
    auto half = TrainingJob::Make(
        {.set = {"train_steps=200", "checkpoint.every_steps=100", kind}});
    ASSERT_THAT(half->Run(), IsOk());
    auto rest = TrainingJob::Make(
        {.set = {absl::StrCat("train_steps=", kSteps),
                 mirrored_first ? "strategy.kind=PARAMETER_SERVER" : kMirrored},
         .checkpoints = half->checkpoints()});
    ASSERT_THAT(rest->StartAll(), IsOk());

    ExpectSameEnd(*rest);
    EXPECT_THAT(ChiefLog(*rest), HasSubstr("200"));
  }
}

// Every rule that updates from a dense gradient, and the mean's limited norm.
TEST(MirrorRulesTest, EveryRuleHasTheBitsOfServers) {
  for (const std::string rule :
       {"GRADIENT_DESCENT", "ADAM", "ADAGRAD", "RMSPROP", "ADADELTA", "FTRL",
        "LAZY_ADAM", "SGD", "ADAM_TORCH", "ADAMW"}) {
    const std::vector<std::string> set = {"train_steps=200",
                                          absl::StrCat("optimizer.kind=", rule),
                                          "learning_rate=0.01"};
    auto servers = TrainingJob::Make({.servers = 1, .set = set});
    ASSERT_THAT(servers->Run(), IsOk()) << rule;
    std::vector<std::string> mirrored = set;
    mirrored.push_back(kMirrored);
    auto mirrors = TrainingJob::Make({.set = mirrored});
    ASSERT_THAT(mirrors->Run(), IsOk()) << rule;

    ExpectSameBits(servers->checkpoints(), mirrors->checkpoints(), 200);
    if (HasFailure()) FAIL() << rule;
  }
}

TEST(MirrorRulesTest, LimitedMeanNormHasTheBitsOfOneServer) {
  const std::vector<std::string> set = {"train_steps=100",
                                        "clipping.kind=MEAN_GLOBAL_NORM",
                                        "clipping.limit=0.05"};
  auto servers = TrainingJob::Make({.servers = 1, .set = set});
  ASSERT_THAT(servers->Run(), IsOk());
  std::vector<std::string> mirrored = set;
  mirrored.push_back(kMirrored);
  auto mirrors = TrainingJob::Make({.set = mirrored});
  ASSERT_THAT(mirrors->Run(), IsOk());

  ExpectSameBits(servers->checkpoints(), mirrors->checkpoints(), 100);
}

}  // namespace
}  // namespace lockstep::testing
