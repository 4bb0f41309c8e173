#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_MEMBER_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_MEMBER_H_

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "common/plan/leave_cause.h"
#include "common/plan/run_settings.h"
#include "tests/conformance/simulation/job.h"

namespace lockstep::simulation {

// Member is a process's membership in the job, as ChiefClient is one over the
// wire: it registers, however long that takes, and keeps the lease alive.
class Member {
 public:
  enum class End { kDone, kLeaseLost, kReplaced };

  // `on_end`: the chief says that the membership is over.
  Member(Job& job, int process, int place, std::function<void()> on_joined,
         std::function<void(End)> on_end)
      : job_(job),
        process_(process),
        place_(place),
        on_joined_(std::move(on_joined)),
        on_end_(std::move(on_end)) {}

  // With a new incarnation. Once more after kLeaseLost.
  void Join();
  // Later incarnations are above this one.
  void OnNewerIncarnation(uint64_t newest) {
    job_.last_incarnation = std::max(job_.last_incarnation, newest);
  }
  void Leave();
  // The same with a cause, until the chief has heard it or knows better; then
  // `left`.
  void Leave(LeaveCause cause, std::function<void()> left);

  uint64_t incarnation() const { return incarnation_; }
  bool joined() const { return joined_; }
  bool job_is_training() const { return job_is_training_; }
  // In effect when it joined.
  const RunSettings& settings() const { return settings_; }

 private:
  void Register(uint64_t incarnation);
  void Beat(uint64_t incarnation);

  Job& job_;
  const int process_;
  const int place_;
  const std::function<void()> on_joined_;
  const std::function<void(End)> on_end_;
  uint64_t incarnation_ = 0;
  bool joined_ = false;
  bool job_is_training_ = false;
  RunSettings settings_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_MEMBER_H_
