#ifndef LOCKSTEP_TESTS_E2E_STRATEGY_STRATEGY_PROGRAM_FIXTURE_H_
#define LOCKSTEP_TESTS_E2E_STRATEGY_STRATEGY_PROGRAM_FIXTURE_H_

#include <cstddef>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "deploy/cli/run/port_reservation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {

// Runs strategy_program on several workers, from or to a checkpoint of a name
// in the fixture's directory.
class StrategyProgramFixture : public ::testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  explicit StrategyProgramFixture(int steps) : steps_(steps) {}

  // Chooses the addresses. Call it once, before the workers start.
  void Reserve(int workers) {
    for (int w = 0; w < workers; ++w) {
      ports_.push_back(*cli::PortReservation::Create());
      addresses_.push_back(
          absl::StrCat("\"127.0.0.1:", ports_.back().port(), "\""));
    }
    tasks_.resize(static_cast<size_t>(workers));
  }

  void Start(int worker, const std::string& checkpoint, int millis_per_step) {
    ChildProcess::Options options;
    options.program = LOCKSTEP_STRATEGY_PROGRAM;
    options.args = {directory_.Join(checkpoint), absl::StrCat(steps_),
                    absl::StrCat(millis_per_step)};
    options.args.insert(options.args.end(), more_args_.begin(),
                        more_args_.end());
    options.environment["CUDA_VISIBLE_DEVICES"] = "";  // also where there are
    options.environment["TF_CONFIG"] = absl::StrCat(
        R"({"cluster": {"worker": [)", absl::StrJoin(addresses_, ", "),
        R"(]}, "task": {"type": "worker", "index": )", worker, "}}");
    options.log_path =
        directory_.Join(absl::StrCat(checkpoint, "-", worker, ".log"));
    auto child = ChildProcess::Start(options);
    ASSERT_OK(child);
    tasks_[static_cast<size_t>(worker)] = *std::move(child);
  }

  void StartAll(const std::string& checkpoint, int millis_per_step) {
    for (size_t w = 0; w < tasks_.size(); ++w) {
      Start(static_cast<int>(w), checkpoint, millis_per_step);
    }
  }

  void ExpectAllEnd() {
    for (const auto& task : tasks_) {
      EXPECT_THAT(task->Wait(kPatience), IsOkAndHolds(cli::TaskExit{}))
          << task->LastWords();
      EXPECT_THAT(task->ReadLog(), ::testing::HasSubstr("done: "));
    }
  }

  ChildProcess& Task(int worker) {
    return *tasks_[static_cast<size_t>(worker)];
  }

  // The values with which a worker has ended.
  std::string FinalValues(int worker) {
    const std::string log = Task(worker).ReadLog();
    const size_t start = log.rfind("done: ");
    return start == std::string::npos ? "" : log.substr(start);
  }

  std::string Checkpoint(const std::string& name) const {
    std::ifstream file(directory_.Join(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // The steps of a checkpoint; 0: none.
  int StepOf(const std::string& name) const {
    int step = 0;
    std::istringstream(Checkpoint(name)) >> step;
    return step;
  }

  void WaitForStep(const std::string& name, int step) {
    const absl::Time until = absl::Now() + kPatience;
    while (StepOf(name) < step) {
      ASSERT_LT(absl::Now(), until) << Task(0).LastWords();
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  const TempDir directory_;
  std::vector<std::string> more_args_;  // of the program

 private:
  const int steps_;
  std::vector<cli::PortReservation> ports_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<ChildProcess>> tasks_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_STRATEGY_STRATEGY_PROGRAM_FIXTURE_H_
