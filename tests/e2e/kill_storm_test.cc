// Processes are killed, or hang for a while, at random instants: the job ends
// by itself, with the bits of an undisturbed one. LOCKSTEP_STORM_KILLS and
// LOCKSTEP_STORM_SEED set the number of kills and their random seed.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr int64_t kStepsPerKill = 40;
// A backup makes steps while other tasks are down.
constexpr int64_t kStepsPerKillWithBackup = 2000;
// After the last kill: a task that was killed after the chief's end would wait
// for the chief.
constexpr int64_t kCalm = 1500;
constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr int kRestartMe = 128;  // codes from here on ask for a restart

int FromEnvironment(const char* name, int otherwise) {
  int value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

// With certificates half as many: they change how tasks come back, not what
// they find.
int KillsOf(int usual) {
  return FromEnvironment("LOCKSTEP_STORM_KILLS",
                         TlsByEnvironment() ? usual / 2 : usual);
}

class Storm {
 public:
  // `wipes`: one copy of the variables in three that is killed is lost, too.
  Storm(TrainingJob& job, uint32_t seed, bool wipes)
      : job_(job), random_(seed), wipes_(wipes) {}

  // Kills a task; one time in three a second one very soon after.
  void Strike() {
    Pause(300);
    KillOne();
    if (Random(3) > 0) return;
    Pause(500);
    KillOne();
  }

  int kills() const { return kills_; }
  int wiped() const { return wiped_; }

  // Restarts tasks whose end asks for it. True if all are done.
  bool Supervise() {
    bool all_done = true;
    for (const auto& [name, index] : job_.Tasks()) {
      const absl::StatusOr<ChildProcess*> process =
          job_.cluster().Process(name, index);
      EXPECT_THAT(process, IsOk());
      const std::optional<cli::TaskExit> end = (*process)->Poll();
      if (end.has_value() && end->ok()) continue;
      all_done = false;
      if (!end.has_value()) continue;
      EXPECT_TRUE(end->signal != 0 || end->code >= kRestartMe)
          << name << " " << index << " " << end->ToString() << "\n"
          << (*process)->LastWords();
      EXPECT_THAT(job_.cluster().Start(name, index), IsOk());
    }
    return all_done;
  }

  // Supervises until `step` is committed (true), or all tasks are done (false).
  absl::StatusOr<bool> SuperviseUntil(int64_t step) {
    absl::Time deadline = absl::Now() + kPatience;
    int64_t newest = -1;
    while (!::testing::Test::HasFailure()) {
      if (Supervise()) return false;
      const absl::StatusOr<JobStatus> status = job_.GetStatus();
      if (status.ok() && status->step >= step) return true;
      if (status.ok() && status->step > newest) {
        newest = status->step;
        deadline = absl::Now() + kPatience;
      }
      if (absl::Now() > deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("step ", step, " was not reached; ",
                         status.ok() ? absl::StrCat("at ", status->step)
                                     : status.status().ToString()));
      }
      absl::SleepFor(kPoll);
    }
    return absl::AbortedError("somebody gave up");
  }

 private:
  int Random(int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random_);
  }
  void Pause(int milliseconds) {
    absl::SleepFor(absl::Milliseconds(Random(milliseconds)));
  }
  // Stops the task with SIGSTOP, possibly for longer than a lease.
  void Hang(const std::string& name, int index) {
    if (!job_.cluster().Signal(name, index, SIGSTOP).ok()) return;
    Pause(3000);
    EXPECT_THAT(job_.cluster().Signal(name, index, SIGCONT), IsOk());
  }
  void KillOne() {
    const auto tasks = job_.Tasks();
    const auto& [name, index] = tasks[Random(static_cast<int>(tasks.size()))];
    if (Random(6) == 0) Hang(name, index);
    if (!job_.cluster().Kill(name, index).ok()) return;
    ++kills_;
    const std::optional<int> mirror = MirrorOf(name, index);
    if (wipes_ && mirror.has_value() && Random(3) == 0) Wipe(*mirror);
    Pause(300);
    EXPECT_THAT(job_.cluster().Start(name, index), IsOk());
  }

  // The index of the copy that the task has; a chief task is the first worker.
  std::optional<int> MirrorOf(const std::string& name, int index) const {
    if (name == "ps") return index;
    const auto tasks = job_.Tasks();
    if (tasks.front().first == "ps") return std::nullopt;
    return name == "chief" ? 0 : index + 1;
  }

  void Wipe(int server) {
    const std::string end = absl::StrCat(".ps-", server, ".state");
    for (const std::string& name : job_.StateFiles()) {
      if (!absl::EndsWith(name, end)) continue;
      std::filesystem::remove(absl::StrCat(job_.state_directory(), "/", name));
      ++wiped_;
    }
  }

  TrainingJob& job_;
  std::mt19937 random_;
  const bool wipes_;
  int wiped_ = 0;
  int kills_ = 0;
};

// The number of kills, and of steps for them.
struct Weather {
  int kills = KillsOf(30);
  int seed = FromEnvironment("LOCKSTEP_STORM_SEED", 1);
  int64_t steps_per_kill = kStepsPerKill;
  bool wipes = false;

  int64_t steps() const { return steps_per_kill * kills + kCalm; }
  std::vector<std::string> Settings() const {
    return {absl::StrCat("train_steps=", steps()), "lease=2s",
            "checkpoint.every_steps=100"};
  }
};

// Runs a job through its storm, until all of its tasks have ended in order.
void Weathers(TrainingJob& job, const Weather& weather) {
  std::cout << weather.kills << " kills, seed " << weather.seed << std::endl;
  Storm storm(job, static_cast<uint32_t>(weather.seed), weather.wipes);
  ASSERT_THAT(job.StartAll(), IsOk());
  while (storm.kills() < weather.kills) {
    const auto goes_on = storm.SuperviseUntil(kStepsPerKill * storm.kills());
    ASSERT_THAT(goes_on, IsOk());
    if (!*goes_on) break;
    storm.Strike();
  }
  // On a fast machine a job with a backup may end before its storm.
  EXPECT_GE(2 * storm.kills(), weather.kills);
  if (weather.wipes) std::cout << storm.wiped() << " states lost" << std::endl;
  ASSERT_THAT(storm.SuperviseUntil(weather.steps()), IsOk());
  const absl::Time deadline = absl::Now() + kPatience;
  while (!storm.Supervise() && !::testing::Test::HasFailure() &&
         absl::Now() < deadline) {
    absl::SleepFor(kPoll);
  }

  EXPECT_THAT(job.cluster().WaitAllSucceed(absl::Seconds(1)), IsOk());
  EXPECT_THAT(job.StateFiles(), ::testing::IsEmpty());
}

TEST(KillStormTest, EndsByItselfWithTheSameBits) {
  const Weather weather;
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
// servers of their own, or in the processes that compute.
class MirrorStormTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, MirrorStormTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "InWorkers" : "Alone";
                         });

TEST_P(MirrorStormTest, EndsByItselfWithTheSameBits) {
  const bool in_workers = GetParam();
  Weather weather;
  weather.kills = KillsOf(6);
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
  auto job = TrainingJob::Make({.workers = 3, .set = settings});

  ASSERT_NO_FATAL_FAILURE(Weathers(*job, weather));

  EXPECT_FALSE(
      ReadCheckpoint(job->checkpoints(), weather.steps(), "model.safetensors")
          .empty());
}

}  // namespace
}  // namespace lockstep::testing
