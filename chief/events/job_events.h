#ifndef LOCKSTEP_CHIEF_EVENTS_JOB_EVENTS_H_
#define LOCKSTEP_CHIEF_EVENTS_JOB_EVENTS_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/recovery/recovery_plan.h"
#include "chief/servers/shard_calls.h"
#include "chief/servers/take_result.h"
#include "common/plan/run_settings.h"

namespace lockstep::chief {

// The chief has prepared the checkpoints that the job begins with. Must be the
// first event, and occurs once.
struct Started {
  absl::Status status = {};
};
// A worker has described the model.
struct ModelDescribed {};

// Answers to the actions of nearly the same names. `round` must be that of the
// action.
struct TakeAnswered {
  int64_t round = 0;
  int server = 0;
  int64_t step = 0;
  absl::Status status = {};
  TakeResult answer = {};
  int64_t call = 0;  // as in the action
};
struct CommitAnswered {
  int64_t round = 0;
  int64_t step = 0;
  int64_t attempt = 0;
  absl::Status status = {};
  int64_t redone_attempt = 0;  // as in CommitResponse
};
struct ExpireAnswered {
  int64_t round = 0;
  int server = 0;
  int worker = 0;
  absl::StatusOr<ShardCalls::Expired> answer = ShardCalls::Expired{};
};
struct ReplaceAnswered {
  int64_t round = 0;
  int server = 0;
  absl::StatusOr<ShardCalls::Replaced> answer = ShardCalls::Replaced{};
};
struct TokensClosed {
  int64_t round = 0;
  absl::Status status = {};
};
struct SnapshotBegun {
  int64_t step = 0;
  absl::Status status = {};
};
struct SnapshotDone {
  int64_t step = 0;
  absl::Status status = {};
};
struct SavedChecked {
  int64_t step = 0;
  absl::StatusOr<bool> whole = false;  // an error: it cannot be judged
};
struct EndFound {
  int64_t step = 0;
  std::optional<absl::Time> saved_at = {};  // if it is known
};
// The outcome of RecoveryRound::Run(), without the map.
struct RoundOutcome {
  RecoveryPlan plan = {};
  int64_t step = 0;
  int64_t checkpoint_step = -1;
  uint64_t epoch = 0;
  std::vector<int> servers = {};  // that are open
  // When the checkpoint of `checkpoint_step` was written, if it is known.
  std::optional<absl::Time> saved_at = {};
};
struct RecoveryDone {
  absl::StatusOr<RoundOutcome> outcome = RoundOutcome{};
};

// The settings that operators want, from the settings table.
struct SettingsWanted {
  RunSettings settings = {};
};
struct CheckpointWanted {};
struct StopWanted {
  absl::Status status = {};  // as StoppedStatus()
};
// The newest score is that of the checkpoint of `step`; -1: none counts any
// more, because the job has gone back.
struct Scored {
  int64_t step = 0;
};

// Time has passed. The chief reports that while nothing else happens.
struct Tick {};

using JobEvent =
    std::variant<Started, ModelDescribed, TakeAnswered, CommitAnswered,
                 ExpireAnswered, ReplaceAnswered, TokensClosed, SnapshotBegun,
                 SnapshotDone, SavedChecked, EndFound, RecoveryDone,
                 SettingsWanted, CheckpointWanted, StopWanted, Scored, Tick>;

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_JOB_EVENTS_H_
