// Processes are killed, or hang for a while, at random instants: the job ends
// by itself, with the bits of an undisturbed one. LOCKSTEP_STORM_SEED sets the
// random seed; for the number of kills see KillsOfAStorm.

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/storm.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

// A backup makes steps while other tasks are down. A pass takes so long that
// these are not thousands.
constexpr int64_t kStepsPerKillWithBackup = 300;
constexpr int kPassMillis = 10;

// Half as many with certificates, which change how a task comes back, but not
// its state.
int KillsOf(int usual) {
  return KillsOfAStorm(TlsByEnvironment() ? usual / 2 : usual);
}

// Runs a job through its storm, until all of its tasks have ended in order.
void Weathers(TrainingJob& job, const Weather& weather) {
  std::cout << weather.kills << " kills, seed " << weather.seed << std::endl;
  Storm storm(job, weather);
  ASSERT_NO_FATAL_FAILURE(storm.Pass());
  // On a fast machine a job with a backup may end before its storm.
  EXPECT_GE(2 * storm.kills(), weather.kills);
  if (!weather.wipes) return;
  std::cout << storm.wiped() << " states lost" << std::endl;
  EXPECT_GT(storm.wiped(), 0);
}

TEST(KillStormTest, EndsByItselfWithTheSameBits) {
  Weather weather;
  weather.kills = KillsOf(30);
  const TrainingJob::Options options = {.workers = 3,
                                        .set = weather.Settings()};
  TrainingJob::Options plain = options;
  plain.tls = false;
  auto undisturbed = TrainingJob::Make(plain);
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make(options);

  ASSERT_NO_FATAL_FAILURE(Weathers(*job, weather));

  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(),
                 weather.steps());
}

// Mirrors also lose their state: it comes back from another one. They are
// in the processes that compute, as a cluster without servers has them, or
// servers of their own; the long storm is of the former.
class MirrorStormTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, MirrorStormTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "InWorkers" : "Alone";
                         });

TEST_P(MirrorStormTest, EndsByItselfWithTheSameBits) {
  const bool in_workers = GetParam();
  Weather weather;
  weather.kills = KillsOf(in_workers ? 50 : 6);
  weather.wipes = true;
  TrainingJob::Options plain = {.workers = 3, .set = weather.Settings()};
  plain.tls = false;
  auto undisturbed = TrainingJob::Make(plain);
  ASSERT_THAT(undisturbed->Run(), IsOk());
  TrainingJob::Options options = {.servers = in_workers ? 0 : 3,
                                  .workers = in_workers ? 2 : 3,
                                  .set = weather.Settings()};
  options.set.push_back("strategy.kind=MULTI_WORKER_MIRRORED");
  auto job = TrainingJob::Make(options);

  ASSERT_NO_FATAL_FAILURE(Weathers(*job, weather));

  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(),
                 weather.steps());
}

// Which worker computes what depends on timing here; the bits do not.
TEST(KillStormTest, SharedStepsEndWithTheBitsOfOneUndisturbedWorker) {
  Weather weather;
  weather.kills = KillsOf(8);
  std::vector<std::string> settings = weather.Settings();
  settings.push_back("work=SHARED");
  settings.push_back("micro_batches_per_step=4");
  TrainingJob::Options plain = {.workers = 1, .set = settings};
  plain.tls = false;
  auto undisturbed = TrainingJob::Make(plain);
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.workers = 3, .set = settings});

  ASSERT_NO_FATAL_FAILURE(Weathers(*job, weather));

  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(),
                 weather.steps());
}

// The members of a step depend on timing here, and so do the bits.
TEST(KillStormTest, EndsByItselfWithABackup) {
  Weather weather;
  weather.kills = KillsOf(5);
  weather.steps_per_kill = kStepsPerKillWithBackup;
  std::vector<std::string> settings = weather.Settings();
  settings.push_back("replicas_to_aggregate=2");
  TrainingJob::Options options = {.workers = 3, .set = settings};
  UseProgram(options);
  options.worker_program.args = {absl::StrCat("--pass_ms=", kPassMillis)};
  auto job = TrainingJob::Make(options);

  ASSERT_NO_FATAL_FAILURE(Weathers(*job, weather));

  EXPECT_FALSE(
      ReadCheckpoint(job->checkpoints(), weather.steps(), "model.safetensors")
          .empty());
}

}  // namespace
}  // namespace lockstep::testing
