#ifndef LOCKSTEP_CHIEF_STEPS_SYNC_LOOP_H_
#define LOCKSTEP_CHIEF_STEPS_SYNC_LOOP_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::chief {

// SyncLoop decides, step by step, what the chief asks of the servers: take on
// all of them, and once all are prepared with the same set of gradients, the
// commit on ps task 0.
//
//   taking --(all prepared, one attempt)--> committing --> between steps
//      ^          (refused: newer attempt) |                    |
//      `-----------------------------------+------ Begin() -----'
//
// Threads: belongs to the chief's loop.
class SyncLoop {
 public:
  struct CommitAction {
    int64_t step = 0;  // the new global step
    int64_t attempt = 0;
  };
  // The calls to make next. Takes are for step().
  struct Actions {
    std::vector<int> takes;              // servers
    std::optional<CommitAction> commit;  // of ps task 0
  };

  SyncLoop(int num_servers, int64_t global_step);

  // Begins the step after step(). Call it between steps.
  Actions Begin();

  // Server `server` has updated all its parts from `step`, for `attempt`.
  // Answers of other steps are ignored.
  Actions OnPrepared(int server, int64_t step, int64_t attempt);

  // A take ended without an answer that counts: ask again.
  Actions OnTakeAgain(int server, int64_t step);

  // `attempt` of the step at hand has begun: gradients that servers hold for
  // older attempts do not count.
  Actions OnAttempt(int64_t attempt);

  // ps task 0 has committed: `step` is the global step, and the loop is
  // between steps.
  void OnCommitted(int64_t step);

  // ps task 0, alone in the job, has committed steps up to `step` by itself;
  // the loop is between steps.
  void OnCommittedByServer(int64_t step);

  // ps task 0 refused the commit because a newer attempt has begun.
  Actions OnCommitRefused();

  int64_t step() const { return step_; }
  bool between_steps() const { return phase_ == Phase::kBetween; }

  // Servers that have not answered the take at hand.
  std::vector<int> Unprepared() const;

 private:
  enum class Phase { kBetween, kTaking, kCommitting };

  Actions Decide();

  Phase phase_ = Phase::kBetween;
  int64_t step_;
  // By server: the attempt for which it is prepared, if it is.
  std::vector<std::optional<int64_t>> prepared_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_SYNC_LOOP_H_
