#ifndef LOCKSTEP_CHIEF_STEPS_WORKER_BURIALS_H_
#define LOCKSTEP_CHIEF_STEPS_WORKER_BURIALS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/members/membership_table.h"
#include "chief/servers/shard_calls.h"
#include "common/base/backoff.h"

namespace lockstep::chief {

// WorkerBurials removes dead workers from the step on all servers that take
// part, so that their successors may join: ps task 0 decides, then all others
// are called at once. A burial that fails for any reason but a newer chief is
// repeated after a pause.
//
//   Begin() -> ps task 0 has answered -> all have answered: buried
//
// Threads: belongs to the chief's loop.
class WorkerBurials {
 public:
  explicit WorkerBurials(int max_workers) : pauses_(max_workers) {}

  // Begins to bury a dead worker, unless a worker of the same task is being
  // buried or the pause after a failure lasts. `round` is that of the servers.
  void Begin(const MembershipTable::Dead& dead, int64_t round, absl::Time now,
             JobActions& out);

  // Forgets burials under way: a round of the servers makes them void.
  void Forget() { open_.clear(); }

  // The result of an event.
  struct Heard {
    // The answer of ps task 0, if the event carries it.
    std::optional<ShardCalls::Expired> decided = {};
    // The worker whose burial has just ended, if any, and the answer of ps 0.
    std::optional<MembershipTable::Dead> buried = {};
    ShardCalls::Expired held = {};
  };
  // Handles an answer to Expire. `servers` are those that take part.
  //
  //   kAborted  there is a newer chief
  absl::StatusOr<Heard> OnAnswer(const ExpireAnswered& event,
                                 const std::vector<int>& servers,
                                 absl::Time now, JobActions& out);

 private:
  struct Open {
    MembershipTable::Dead dead;
    int64_t round = 0;
    int unanswered = 1;
    absl::Status failure = {};  // the first one
    ShardCalls::Expired held = {};
  };

  void Ended(const Open& open, absl::Time now, Heard& heard, JobActions& out);

  Backoff pauses_;            // by worker
  std::map<int, Open> open_;  // by worker
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_WORKER_BURIALS_H_
