// The workers of a program with a strategy are killed at random instants, one
// or both at a time, and started again: both end with the bits of a run in
// which no worker was killed. LOCKSTEP_STORM_SEED sets the random seed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/strategy/strategy_program_fixture.h"
#include "tests/testing/process_search.h"

namespace lockstep::testing {
namespace {

constexpr int kSteps = 1500;
constexpr int kKills = 50;
// The others hit a worker that starts, joins, or saves a checkpoint.
constexpr int kKillsInSteps = 25;
constexpr int kMillisPerStep = 2;
// The bounds of the random instants: steps since all have joined, the time
// within a step, and the time of a start with the joining.
constexpr int kStepsBetweenKills = 40;
constexpr int kMicrosInStep = 4'000;
constexpr int kMicrosOfStart = 100'000;

constexpr char kName[] = "killed";

uint32_t Seed() {
  const char* text = std::getenv("LOCKSTEP_STORM_SEED");
  return text != nullptr ? static_cast<uint32_t>(std::atoi(text)) : 7;
}

class StrategyStormTest : public StrategyProgramFixture {
 protected:
  StrategyStormTest() : StrategyProgramFixture(kSteps), random_(Seed()) {}

  // Kills one worker; one time in three the other one at once, too.
  void Strike() {
    const int first = Random(2);
    const bool both = Random(3) == 0 && kills_ + 1 < kKills;
    // One instant in four does not wait until all have joined.
    if (Random(4) > 0) {
      ASSERT_NO_FATAL_FAILURE(
          WaitForSteps(first, 1 + Random(kStepsBetweenKills)));
      Pause(kMicrosInStep);
    } else {
      Pause(kMicrosOfStart);
    }
    ASSERT_NO_FATAL_FAILURE(Kill(first));
    if (both) {
      ASSERT_NO_FATAL_FAILURE(Kill(1 - first));
    }
    read_[1 - first] = Task(1 - first).ReadLog().size();
    Restart(first);
    if (both) Restart(1 - first);
  }

  int kills_ = 0;
  int kills_in_steps_ = 0;

 private:
  int Random(int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random_);
  }
  void Pause(int micros) { absl::SleepFor(absl::Microseconds(Random(micros))); }

  // Waits until a worker has joined after the last strike, and has begun so
  // many steps since.
  void WaitForSteps(int worker, int steps) {
    const absl::Time until = absl::Now() + kPatience;
    while (StepsBegun(worker) < steps) {
      ASSERT_FALSE(Task(worker).Poll().has_value()) << Task(worker).LastWords();
      ASSERT_LT(absl::Now(), until)
          << "worker " << worker << " has not begun " << steps
          << " steps after " << kills_ << " kills:\n"
          << Task(worker).LastWords() << "\nthe other one:\n"
          << Task(1 - worker).LastWords();
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  int StepsBegun(int worker) {
    const std::string log = Task(worker).ReadLog().substr(read_[worker]);
    size_t at = log.rfind("joined at step ");
    if (at == std::string::npos) return 0;
    int begun = 0;
    while ((at = log.find(" begins\n", at + 1)) != std::string::npos) ++begun;
    return begun;
  }

  void Kill(int worker) {
    ChildProcess& task = Task(worker);
    ASSERT_FALSE(task.Poll().has_value())
        << "worker " << worker << " has ended by itself:\n"
        << task.LastWords();
    task.Kill();
    ++kills_;
    if (absl::EndsWith(task.ReadLog(), " begins\n")) ++kills_in_steps_;
  }

  void Restart(int worker) {
    read_[worker] = 0;
    ASSERT_NO_FATAL_FAILURE(Start(worker, kName, kMillisPerStep));
  }

  std::mt19937 random_;
  size_t read_[2] = {0, 0};  // bytes of the logs at the last strike
};

TEST_F(StrategyStormTest, FiftyKillsOfTwoWorkersChangeNoBitOfEither) {
  Reserve(2);
  StartAll("undisturbed", 0);
  ExpectAllEnd();
  ASSERT_EQ(StepOf("undisturbed"), kSteps);
  const std::string values = FinalValues(0);
  ASSERT_EQ(FinalValues(1), values);

  StartAll(kName, kMillisPerStep);
  while (kills_ < kKills) ASSERT_NO_FATAL_FAILURE(Strike());
  std::cout << kills_ << " kills, " << kills_in_steps_
            << " of them in a step; step " << StepOf(kName) << " of " << kSteps
            << " was saved by then" << std::endl;
  ExpectAllEnd();

  EXPECT_GE(kills_in_steps_, kKillsInSteps);
  EXPECT_EQ(Checkpoint(kName), Checkpoint("undisturbed"));
  EXPECT_EQ(FinalValues(0), values);
  EXPECT_EQ(FinalValues(1), values);
  EXPECT_THAT(ProcessesWith(directory_.path()), ::testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
