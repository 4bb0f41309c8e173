#ifndef LOCKSTEP_TESTS_E2E_STORM_H_
#define LOCKSTEP_TESTS_E2E_STORM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/training_job.h"

namespace lockstep::testing {

// Returns the number in an environment variable; `otherwise` without one.
int FromEnvironment(const char* name, int otherwise);

// Returns the number of kills of a storm that usually has so many: the one in
// LOCKSTEP_STORM_KILLS, or a quarter, but at least 8, where LOCKSTEP_STORMS is
// "short".
int KillsOfAStorm(int usual);

// The kills of a job, and the steps that it makes for them.
struct Weather {
  int kills = KillsOfAStorm(30);
  int seed = FromEnvironment("LOCKSTEP_STORM_SEED", 1);
  int64_t steps_per_kill = 40;
  // Steps after the last kill: a task that was killed after the chief's end
  // would wait for the chief. Absent: as many as a fast machine makes between
  // the kills, beyond those for each.
  std::optional<int64_t> calm;
  // The next kill waits until the job has made as many steps for each one.
  int64_t steps_between_kills = 40;
  // Bound of the random times before a kill, and before the task is back.
  int pause_ms = 300;
  // One copy of the variables in three that is killed is lost, too; the first
  // kills are of copies, until one is lost.
  bool wipes = false;
  int64_t train_steps = 0;  // 0: as many as the kills need

  int64_t steps() const {
    if (train_steps > 0) return train_steps;
    return steps_per_kill * kills + calm.value_or(50 * kills + 100);
  }
  // The settings of a job that makes these steps.
  std::vector<std::string> Settings() const {
    return {absl::StrCat("train_steps=", steps()), "lease=2s",
            "checkpoint.every_steps=100"};
  }
};

// Storm kills tasks of a job at random instants, or stops them for a while, and
// starts them again. One kill in four follows another one very soon.
//
// Threads: not thread-safe.
class Storm {
 public:
  Storm(TrainingJob& job, const Weather& weather)
      : job_(job),
        weather_(weather),
        random_(static_cast<uint32_t>(weather.seed)) {}

  // Starts the job, kills its tasks, and waits until all have ended in order;
  // if they do not, the test fails. A job that is done before its last kill
  // gets no more.
  void Pass();

  // The kills of tasks of one type, "worker"; of all.
  int kills(const std::string& task) const;
  int kills() const { return kills_; }
  // The step at the last kill, or some steps before it.
  int64_t step() const { return step_; }
  int wiped() const { return wiped_; }

 private:
  using Task = std::pair<std::string, int>;

  void Strike();
  bool Supervise();
  absl::StatusOr<bool> SuperviseUntil(int64_t step);
  void Hang(const Task& task);
  Task Victim();
  void KillOne();
  std::optional<int> MirrorOf(const Task& task) const;
  void Wipe(int server);

  int Random(int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random_);
  }
  void Pause(int milliseconds);

  TrainingJob& job_;
  const Weather weather_;
  std::mt19937 random_;
  int64_t step_ = 0;
  int wiped_ = 0;
  int kills_ = 0;
  std::map<std::string, int> kills_of_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_STORM_H_
