#ifndef LOCKSTEP_TESTS_UNIT_CHIEF_JOB_JOB_DRIVER_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_CHIEF_JOB_JOB_DRIVER_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/job/job_driver.h"
#include "chief/members/membership_table.h"
#include "common/base/stop_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {

// JobDriverTest drives a job of `servers` servers and `workers` workers by
// hand. Actions are words, such as "take 0 at 3": see the .cc. What goes to the
// log and waits are kept apart, in said and waits.
class JobDriverTest : public ::testing::Test {
 protected:
  using Actions = std::vector<std::string>;

  JobDriverTest();

  // Makes the driver; before, a test may change the job, servers, workers and
  // options.
  void Make();
  // The same, and all members are there; answers the calls of the first round.
  Actions Open(int64_t step = 0);
  void Join(TaskType type, int index, uint64_t incarnation = 1);
  void JoinAll();
  void Leave(int worker, LeaveCause cause, const std::string& reason = "bye");

  Actions On(const JobEvent& event);
  Actions Tick() { return On(lockstep::chief::Tick{}); }
  // Time passes, with ticks, while members beat; returns all actions.
  Actions Pass(absl::Duration time);
  // The same, without heartbeats of `silent`.
  Actions PassWithout(const TaskId& silent, absl::Duration time);
  // The same, without those of mirror `index` and its worker.
  Actions PassWithout(int index, absl::Duration time);

  Actions Started(const absl::Status& status = absl::OkStatus()) {
    return On(lockstep::chief::Started{status});
  }
  // The result of a round.
  Actions Recovered(int64_t step, int64_t saved = -1,
                    RecoveryPlan::Action action = RecoveryPlan::Action::kStart,
                    bool redo = false);
  Actions RoundFailed(const absl::Status& status) {
    return On(RecoveryDone{status});
  }
  Actions Prepared(int server, int64_t attempt = 1,
                   std::vector<int> contributors = {});
  Actions Waiting(int server, const TakeResult& answer);
  Actions TakeFailed(int server, const absl::Status& status);
  Actions Committed(int64_t attempt = 1,
                    const absl::Status& status = absl::OkStatus(),
                    int64_t redone_attempt = 0);
  // Makes the step at hand to its end.
  Actions Step();
  Actions Expired(int server, int worker, int64_t attempt = 0,
                  bool held_announcement = false);
  Actions Closed(const absl::Status& status = absl::OkStatus());
  Actions Copied(int64_t step, const absl::Status& status = absl::OkStatus()) {
    return On(SnapshotBegun{step, status});
  }
  Actions Written(int64_t step, const absl::Status& status = absl::OkStatus()) {
    return On(SnapshotDone{step, status});
  }
  Actions Stop(bool hold = false) {
    return On(StopWanted{StoppedStatus("enough", hold)});
  }

  // Time passes, with ticks, while those members beat.
  Actions PassWhile(absl::FunctionRef<bool(const TaskId& task)> beats,
                    absl::Duration time);

  JobConfig job;
  int servers = 2;
  int workers = 2;
  JobDriver::Options options;
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  std::unique_ptr<MembershipTable> members;
  std::unique_ptr<JobDriver> driver;
  std::map<int, int64_t> newest_take;  // by server: its call
  int64_t round = 0;                   // of the servers
  RecoveryRound::Request request;      // of the last Recover
  absl::Time died_at;                  // of the last ProcessDied
  absl::Duration stood_still;          // of the last LossesSoFar
  std::optional<absl::Time> saved_at;  // of the last CheckpointSaved
  bool over = false;  // settings were closed because the job has ended
  std::vector<std::string> said;
  std::vector<std::string> waits;  // "who: for what", the last ones
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_TESTS_UNIT_CHIEF_JOB_JOB_DRIVER_FIXTURE_H_
