#ifndef LOCKSTEP_CHIEF_STEPS_STALL_REPLACEMENT_H_
#define LOCKSTEP_CHIEF_STEPS_STALL_REPLACEMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/servers/shard_calls.h"
#include "chief/steps/stall_watch.h"

namespace lockstep::chief {

// StallReplacement replaces a worker that holds up a step by a waiting backup:
// ps task 0 decides, then all other servers are called at once. One replacement
// is under way at a time.
//
// Threads: belongs to the chief's loop.
class StallReplacement {
 public:
  // The time after an attempt in which no other begins: kPauseAfterLost if its
  // worker's connection has ended and no call failed, else kPause.
  static constexpr absl::Duration kPause = absl::Seconds(1);
  static constexpr absl::Duration kPauseAfterLost = absl::Milliseconds(100);

  explicit StallReplacement(int num_servers) : num_servers_(num_servers) {}

  // True if no replacement is under way and the pause after the last is over.
  bool MayBegin(absl::Time now) const {
    return !open_.has_value() && now >= again_;
  }
  // Begins to replace the worker, which holds up `attempt` of the step after
  // `step`. MayBegin() must be true.
  void Begin(const StallWatch::Found& stalled, int64_t step, int64_t attempt,
             const std::string& reason, int64_t round, absl::Time now,
             JobActions& out);

  // Forgets a replacement under way: a round of the servers makes it void.
  void Forget() { open_.reset(); }

  // Handles `event`. Returns the decision of ps task 0 if `event` is its
  // answer.
  std::optional<ShardCalls::Replaced> OnAnswer(const ReplaceAnswered& event,
                                               JobActions& out);

 private:
  struct Open {
    Replace asked;
    int unanswered = 1;
    absl::Status failure = {};  // the first one
    ShardCalls::Replaced replaced = {};
  };

  void Ended(JobActions& out);

  const int num_servers_;
  absl::Time again_ = absl::InfinitePast();
  absl::Time again_after_failure_ = absl::InfinitePast();
  std::optional<Open> open_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_STALL_REPLACEMENT_H_
