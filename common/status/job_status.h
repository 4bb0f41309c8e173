#ifndef LOCKSTEP_COMMON_STATUS_JOB_STATUS_H_
#define LOCKSTEP_COMMON_STATUS_JOB_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/plan/job_state.h"

namespace lockstep {

// The state of a member, from the chief's view.
enum class MemberState : int {
  kUnknown = 0,  // a newer chief's state without a name here
  kMissing = 1,  // it has not registered yet
  kAlive = 2,
  kDead = 3,
  kLeft = 4,
  kJoining = 5,  // a worker that must register again
};

// "missing", "alive", ...
absl::string_view MemberStateName(MemberState state);

// The report of a worker; passes and counts concern gradients.
struct WorkerCounts {
  int64_t local_step = 0;
  int64_t passes = 0;
  int64_t accepted = 0;
  int64_t stale = 0;
  absl::Duration waiting{};  // total, for other processes
  std::string activity{};    // e.g. "waits for a token", for people
  bool computes = false;     // the activity is the computation of a pass
  absl::Duration activity_age{};
  // By name; the user's program chose them.
  std::vector<std::pair<std::string, double>> figures{};
};

// The load of a process on its machine.
struct LoadStatus {
  int64_t resident_bytes = 0;
  int64_t memory_limit_bytes = 0;  // 0: not known
  double processors = 0;           // kept busy
};

// One member as the chief sees it.
struct MemberStatus {
  std::string task{};  // TaskId::ToString(), e.g. "worker 1"
  MemberState state = MemberState::kUnknown;
  std::optional<absl::Duration> since_heartbeat{};
  std::optional<WorkerCounts> counts{};  // workers only
  std::optional<LoadStatus> load{};      // where it is reported
};

// The newest score of a checkpoint.
struct Evaluation {
  int64_t step = 0;
  double loss = 0;
  double accuracy = 0;             // in [0, 1]
  std::optional<double> auc = {};  // only for two classes; in [0, 1]
  // A user's evaluator reports these in place of the others, by name.
  std::vector<std::pair<std::string, double>> figures = {};
};

// One wait of a process.
struct WaitStatus {
  std::string owner{};      // e.g. "step 12 on ps 0"
  std::string waits_for{};  // e.g. "1 more gradient; worker 2"
  absl::Duration since{};   // age of the wait
};

// The settings that can change while the job runs, as they are now.
struct Settings {
  int64_t revision = 0;  // counts changes
  int64_t replicas_to_aggregate = 0;
  double learning_rate = 0;  // base of the schedule
  // Rate of the next step; 0 if the chief does not report it.
  double learning_rate_now = 0;
  bool paused = false;
  std::vector<int> workers{};  // only in elastic jobs
  // Shared steps have micro-batches; 0: the job has none.
  int64_t micro_batches_per_step = 0;
  int64_t micro_batches_per_push = 0;
};

// The cost of deaths so far.
struct LossStatus {
  int64_t recoveries = 0;      // absences of a server
  int64_t steps_redone = 0;    // steps that were redone before their commit
  int64_t steps_repeated = 0;  // committed steps that were lost
  absl::Duration stood_still{};

  bool any() const { return recoveries > 0 || steps_redone > 0; }
};

// The death of one process.
struct DeathStatus {
  std::string task{};      // e.g. "worker 1"
  std::string reason{};    // the chief's evidence
  std::string held{};      // e.g. "an announcement"
  std::string redone{};    // e.g. "step 13"; empty: nothing
  absl::Duration since{};  // age
  std::optional<absl::Duration> stood_still{};  // set when the job goes on
};

// A message for operators, shown once.
struct Notice {
  // Ascending, also across restarts of the chief unless the clock is set back.
  int64_t number = 0;
  std::string text{};
};

// JobStatus is the chief's answer to GetStatus. Its texts come from the wire:
// printing code must make them printable first.
struct JobStatus {
  std::string job_name{};
  std::string job_id{};
  JobState state = JobState::kUnknown;
  std::string reason{};  // why the job has ended
  int64_t step = 0;      // committed
  int64_t train_steps = 0;
  absl::Duration training_time{};  // since the first step began
  double loss = 0;                 // of the newest passes; see has_loss()
  double examples_per_second = 0;
  std::string example_unit = "examples";  // or "words"
  std::optional<Evaluation> evaluation{};
  std::vector<MemberStatus> members{};
  std::vector<WaitStatus> waits{};
  LossStatus losses{};
  std::vector<DeathStatus> deaths{};  // the newest ones, oldest first
  std::vector<Notice> notices{};      // the newest ones, oldest first
  int64_t last_checkpoint_step = -1;  // -1: none yet
  // Since that was written; absent where it is not reported.
  std::optional<absl::Duration> last_checkpoint_age{};
  std::string checkpoint_directory{};  // empty: no checkpoints
  uint64_t epoch = 0;                  // of the chief
  std::string checkpoint_trouble{};    // empty: the newest attempt succeeded
  // Sentences about certificates; empty: all are well, or there are none.
  std::vector<std::string> security_troubles{};
  Settings settings{};  // in effect

  // False until a worker reports a loss.
  bool has_loss() const { return loss != 0; }
};

// Returns "starting", "training", ...; "paused" while an operator pauses
// training.
absl::string_view ShownState(const JobStatus& status);

// Returns the index of a worker; nullopt for other tasks.
std::optional<int> WorkerIndexOf(const MemberStatus& member);

// Returns the members that are workers, in the chief's order.
std::vector<MemberStatus> WorkersOf(const JobStatus& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STATUS_JOB_STATUS_H_
