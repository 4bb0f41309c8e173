#ifndef LOCKSTEP_SERVER_STEP_STRICT_PENDING_PUSHES_H_
#define LOCKSTEP_SERVER_STEP_STRICT_PENDING_PUSHES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/step/engine.h"
#include "server/step/strict/part_work.h"

namespace lockstep::server {

// A push that has undecided parts.
struct PendingPush {
  uint64_t ticket = 0;
  int first_part = 0;
  bool return_values = false;
  std::vector<PushOutcome> outcomes = {};
  int undecided = 0;
  absl::Status status = {};  // of an update that failed
};

// Returns the record of a push none of whose parts is decided. The answer will
// have values if the push asks for them and `may_return` is set.
std::shared_ptr<PendingPush> MakePending(uint64_t ticket, const Push& push,
                                         bool may_return);

// A worker's gradient of a part, and the pushes that wait for its outcome, each
// with the index of the part in the push.
struct Contribution {
  uint64_t incarnation = 0;
  int64_t pass = 0;
  PartGradient gradient = {};
  std::vector<std::pair<std::shared_ptr<PendingPush>, int>> waiters = {};
};

// Adds 1 to the count of each worker that has a gradient in `collected`.
void CountWorkers(const std::map<Contributor, Contribution>& collected,
                  std::map<int, int>& counts);

// PendingPushes answers each push when the last of its parts is decided.
//
// Threads: not thread-safe: the caller must hold the lock that guards the
//          arguments.
// Borrows: the updater.
class PendingPushes {
 public:
  explicit PendingPushes(PartUpdater& updater) : updater_(updater) {}

  // Adds a push to those that wait for the outcome of the gradient of its part
  // `i`. If too many pushes wait for one gradient, answers the oldest with
  // kAborted.
  void Await(Contribution& contribution,
             const std::shared_ptr<PendingPush>& pending, int i, int64_t step,
             ShardAnswers& answers) const;

  // Decides a gradient: each push that waits for it has one undecided part
  // less, and is answered once it has none.
  void Decide(Contribution& contribution, PushOutcome outcome,
              const absl::Status& status, int64_t step,
              ShardAnswers& answers) const;

  // Decides all gradients of a part, and removes them.
  void DecideAll(std::map<Contributor, Contribution>& collected,
                 PushOutcome outcome, const absl::Status& status, int64_t step,
                 ShardAnswers& answers) const;

  // Removes the refused gradients and answers their pushes with the error. The
  // part then waits for other gradients of these workers. No effect for those
  // that `collected` does not have.
  void Refuse(std::map<Contributor, Contribution>& collected,
              const std::map<Contributor, absl::Status>& refused, int64_t step,
              ShardAnswers& answers) const;

  // Answers a push without undecided parts, from a server at `step`.
  void Answer(PendingPush& pending, int64_t step, ShardAnswers& answers) const;

 private:
  PartUpdater& updater_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_PENDING_PUSHES_H_
