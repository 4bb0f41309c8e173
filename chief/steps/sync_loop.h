#ifndef LOCKSTEP_CHIEF_STEPS_SYNC_LOOP_H_
#define LOCKSTEP_CHIEF_STEPS_SYNC_LOOP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/plan/step_vocabulary.h"

namespace lockstep::chief {

// SyncLoop decides, step by step, which calls the chief makes to the servers:
// take on all that take part, and once all are prepared with the same set of
// gradients, commit on ps task 0. If the norm of the mean gradients is limited,
// servers that have measured them wait: once all have, for the same attempt,
// the loop adds up the squares and takes again with the norm.
//
//   taking --(all prepared, one attempt)--> committing --> between steps
//    | ^          (refused: newer attempt) |                    |
//    | `-----------------------------------+------ Begin() -----'
//    `--(all measured or prepared, one attempt)--> taking, with norm()
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

  // `servers` are those that take part, with ps task 0. Answers of others are
  // ignored.
  SyncLoop(const std::vector<int>& servers, int64_t global_step);

  // Begins the step after step(). between_steps() must be true.
  Actions Begin();

  // Records that server `server` has updated all its parts from `step`, for
  // `attempt`. Answers of other steps are ignored. `squares`: as in TakeResult.
  Actions OnPrepared(int server, int64_t step, int64_t attempt,
                     std::optional<double> squares = std::nullopt);

  // Records that server `server` has all gradients of `attempt` of the step
  // after `step`; its update waits for the norm.
  Actions OnMeasured(int server, int64_t step, int64_t attempt, double squares);

  // The norm that takes must carry, once every server has measured its means.
  const std::optional<MeanNorm>& norm() const { return norm_; }

  // Repeats a take that ended without an answer that counts.
  Actions OnTakeAgain(int server, int64_t step);

  // Records that `attempt` of the step at hand has begun: gradients that
  // servers hold for older attempts do not count.
  Actions OnAttempt(int64_t attempt);

  // Records that ps task 0 has committed `step`. The loop is between steps
  // then.
  void OnCommitted(int64_t step);

  // Records that ps task 0, alone in the job, has committed steps up to `step`
  // by itself. The loop is between steps then.
  void OnCommittedByServer(int64_t step);

  // Continues after ps task 0 has refused the commit because a newer attempt
  // has begun.
  Actions OnCommitRefused();

  int64_t step() const { return step_; }
  bool between_steps() const { return phase_ == Phase::kBetween; }

  // Servers that are not known to be prepared.
  std::vector<int> Unprepared() const;

 private:
  enum class Phase { kBetween, kTaking, kCommitting };

  // The progress of a server.
  struct Progress {
    int64_t attempt = 0;
    bool prepared = false;  // else only measured
    double squares = 0;
  };

  Actions Decide();
  // True if an answer of `server` about the step after `step` counts.
  bool IsAwaited(int server, int64_t step) const;
  // Forgets the answers of servers at older attempts than `newest`, and returns
  // these servers: they need another take.
  std::vector<int> ForgetOlder(int64_t newest);

  Phase phase_ = Phase::kBetween;
  int64_t step_;
  // By server that takes part; nullopt: it has not answered.
  std::map<int, std::optional<Progress>> servers_;
  std::optional<MeanNorm> norm_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STEPS_SYNC_LOOP_H_
