#ifndef LOCKSTEP_CHIEF_EVENTS_JOB_ACTIONS_H_
#define LOCKSTEP_CHIEF_EVENTS_JOB_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "chief/events/job_reports.h"
#include "chief/operators/settings_table.h"
#include "chief/recovery/recovery_round.h"
#include "common/plan/run_settings.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::chief {

// Calls to one server. Each must be answered, once, by the event of the same
// name with the same round. They must be made in the order of the actions and
// must not wait for one another.
struct Take {
  int64_t round = 0;
  int server = 0;
  int64_t step = 0;
  int64_t commit_until = 0;  // as in TakeAndApplyRequest
  int64_t attempt = 0;       // as in TakeAndApplyRequest
  std::optional<MeanNorm> norm = {};
  int64_t call = 0;  // grows with every take, whatever the server
};
struct Commit {  // of ps task 0
  int64_t round = 0;
  int64_t step = 0;
  int64_t attempt = 0;
  // By server, as in CommitRequest; an empty set is not checked.
  std::vector<std::vector<int>> contributors = {};
};
// Reports the commit to `servers`: all that take part, except ps task 0. They
// otherwise learn of a commit from the next take, or before a snapshot. The
// answers do not matter.
struct TellCommit {
  int64_t step = 0;
  int64_t attempt = 0;
  std::vector<int> servers = {};
};
struct Expire {
  int64_t round = 0;
  int server = 0;
  int worker = 0;
  uint64_t incarnation = 0;
  std::string reason = {};
  int64_t step = 0;  // as in ExpireWorkerRequest
  int64_t attempt = 0;
  bool input_ended = false;  // the worker has used up its data
};
struct Replace {
  int64_t round = 0;
  int server = 0;
  int worker = 0;
  int64_t step = 0;  // as in ReplaceMemberRequest
  int64_t attempt = 0;
  std::string reason = {};
};
struct CloseTokens {  // of ps task 0
  int64_t round = 0;
};

// Copies `step` aside on all servers; SnapshotBegun is the answer. If the copy
// succeeded, a checkpoint is then written from it, and SnapshotDone reports its
// end.
struct BeginSnapshot {
  int64_t step = 0;
  int64_t attempt = 0;  // that was committed
};
// Checks that the checkpoint of `step` is whole on disk. If it is damaged, it
// must be set aside. SavedChecked is the answer.
struct CheckSaved {
  int64_t step = 0;
};
// Looks for a whole checkpoint of the last step, which exists if the job was
// done before. EndFound is the answer if there is one; otherwise no event
// follows.
struct LookForEnd {};

// Runs one round, as RecoveryRound::Run(); RecoveryDone is the answer. Events
// of calls that were made before the round no longer count.
struct Recover {
  RecoveryRound::Request request = {};
};

// Opens the settings table for operators.
struct OpenSettings {
  RunSettings settings = {};
};
struct CloseSettings {
  std::string reason = {};
  bool over = false;  // the job has ended
};
struct TakeOut {  // in an elastic job
  using Why = SettingsTable::WhyOut;
  int worker = 0;
  Why why = Why::kLeft;
};
// Records that the chief itself has changed the number of gradients of a step:
// later changes by operators must start from that number.
struct Tuned {
  int replicas = 0;
};

// A line for the log.
struct Say {
  enum class Level { kInfo, kWarning, kError };
  Level level = Level::kInfo;
  std::string text = {};
};

// Logs the job's losses in total.
struct SumUp {};
// The job is over, or a newer chief has taken it over (kUnavailable).
struct Finish {
  absl::Status status = {};
  // A checkpoint is still being written, for which the caller must not wait:
  // its volume hangs, or the newer chief removes what is unfinished.
  bool is_writing = false;
};

using JobAction =
    std::variant<Take, Commit, TellCommit, Expire, Replace, CloseTokens,
                 BeginSnapshot, CheckSaved, LookForEnd, Recover, OpenSettings,
                 CloseSettings, TakeOut, Tuned, Say, SumUp, JobReport, Finish>;
// In the order in which they must be carried out.
using JobActions = std::vector<JobAction>;

inline void Info(JobActions& out, std::string text) {
  out.push_back(Say{Say::Level::kInfo, std::move(text)});
}
inline void Warn(JobActions& out, std::string text) {
  out.push_back(Say{Say::Level::kWarning, std::move(text)});
}
inline void Error(JobActions& out, std::string text) {
  out.push_back(Say{Say::Level::kError, std::move(text)});
}

// Notifies operators, in the log and in the status.
inline void Notify(JobActions& out, const std::string& text) {
  Warn(out, text);
  out.push_back(Noticed{text});
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_JOB_ACTIONS_H_
