#include "tests/e2e/storm.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr int kFewestKills = 8;
constexpr int kRestartMe = 128;  // codes from here on ask for a restart

}  // namespace

int FromEnvironment(const char* name, int otherwise) {
  int value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

int KillsOfAStorm(int usual) {
  const char* storms = std::getenv("LOCKSTEP_STORMS");
  const bool is_short = storms != nullptr && std::string(storms) == "short";
  const int few = std::min(usual, std::max(kFewestKills, usual / 4));
  return FromEnvironment("LOCKSTEP_STORM_KILLS", is_short ? few : usual);
}

void Storm::Pass() {
  ASSERT_THAT(job_.StartAll(), IsOk());
  while (kills_ < weather_.kills) {
    const auto goes_on = SuperviseUntil(weather_.steps_between_kills * kills_);
    ASSERT_THAT(goes_on, IsOk());
    if (!*goes_on) break;
    Strike();
  }
  ASSERT_THAT(SuperviseUntil(weather_.steps()), IsOk());
  const absl::Time deadline = absl::Now() + kPatience;
  while (!Supervise() && !::testing::Test::HasFailure() &&
         absl::Now() < deadline) {
    absl::SleepFor(kPoll);
  }
  EXPECT_THAT(job_.cluster().WaitAllSucceed(absl::Seconds(1)), IsOk());
  EXPECT_THAT(job_.StateFiles(), ::testing::IsEmpty());
}

int Storm::kills(const std::string& task) const {
  const auto found = kills_of_.find(task);
  return found == kills_of_.end() ? 0 : found->second;
}

// Kills a task; one time in three a second one very soon after.
void Storm::Strike() {
  Pause(weather_.pause_ms);
  KillOne();
  if (Random(3) > 0) return;
  Pause(2 * weather_.pause_ms);
  KillOne();
}

// Restarts tasks whose end asks for it. True if all are done.
bool Storm::Supervise() {
  bool all_done = true;
  for (const auto& [name, index] : job_.Tasks()) {
    const absl::StatusOr<ChildProcess*> process =
        job_.cluster().Process(name, index);
    EXPECT_THAT(process, IsOk());
    const std::optional<cli::TaskExit> end = (*process)->Poll();
    if (end.has_value() && end->ok()) continue;
    all_done = false;
    if (!end.has_value()) continue;
    // Kills of the storm are never seen here: KillOne() starts the task again.
    EXPECT_TRUE(end->signal == 0 && end->code >= kRestartMe)
        << name << " " << index << " " << end->ToString() << "\n"
        << (*process)->LastWords();
    EXPECT_THAT(job_.cluster().Start(name, index), IsOk());
  }
  return all_done;
}

// Supervises until `step` is committed (true), or all tasks are done (false).
absl::StatusOr<bool> Storm::SuperviseUntil(int64_t step) {
  absl::Time deadline = absl::Now() + kPatience;
  int64_t newest = -1;
  while (!::testing::Test::HasFailure()) {
    if (Supervise()) return false;
    const absl::StatusOr<JobStatus> status = job_.TryStatus();
    if (status.ok() && kills_ < weather_.kills) step_ = status->step;
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
  return absl::AbortedError("the test has failed");
}

void Storm::Pause(int milliseconds) {
  absl::SleepFor(absl::Milliseconds(Random(milliseconds)));
}

// Stops the task with SIGSTOP, possibly for longer than a lease.
void Storm::Hang(const Task& task) {
  const auto& [name, index] = task;
  if (!job_.cluster().Signal(name, index, SIGSTOP).ok()) return;
  Pause(3000);
  EXPECT_THAT(job_.cluster().Signal(name, index, SIGCONT), IsOk());
}

// Returns the next task to kill: one that has a copy until one is lost, if the
// storm loses any.
Storm::Task Storm::Victim() {
  std::vector<Task> tasks = job_.Tasks();
  if (weather_.wipes && wiped_ == 0) {
    const auto end = std::remove_if(
        tasks.begin(), tasks.end(),
        [this](const Task& task) { return !MirrorOf(task).has_value(); });
    tasks.erase(end, tasks.end());
  }
  return tasks[Random(static_cast<int>(tasks.size()))];
}

void Storm::KillOne() {
  const Task task = Victim();
  const auto& [name, index] = task;
  if (Random(6) == 0) Hang(task);
  if (!job_.cluster().Kill(name, index).ok()) return;
  ++kills_;
  ++kills_of_[name];
  const std::optional<int> mirror = MirrorOf(task);
  if (weather_.wipes && mirror.has_value() && (wiped_ == 0 || Random(3) == 0)) {
    Wipe(*mirror);
  }
  Pause(weather_.pause_ms);
  EXPECT_THAT(job_.cluster().Start(name, index), IsOk());
}

// The index of the copy that the task has; a chief task is the first worker.
std::optional<int> Storm::MirrorOf(const Task& task) const {
  const auto& [name, index] = task;
  if (name == "ps") return index;
  const auto tasks = job_.Tasks();
  if (tasks.front().first == "ps") return std::nullopt;
  return name == "chief" ? 0 : index + 1;
}

void Storm::Wipe(int server) {
  const std::string end = absl::StrCat(".ps-", server, ".state");
  for (const std::string& name : job_.StateFiles()) {
    if (!absl::EndsWith(name, end)) continue;
    std::filesystem::remove(absl::StrCat(job_.state_directory(), "/", name));
    ++wiped_;
  }
}

}  // namespace lockstep::testing
