#ifndef LOCKSTEP_SERVER_STEP_STRICT_WORKER_ROLL_H_
#define LOCKSTEP_SERVER_STEP_STRICT_WORKER_ROLL_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/step_vocabulary.h"

namespace lockstep::server {

// WorkerRoll keeps the workers that take part in a job, and the newest pass
// that each of them has called with. A call for an older pass was delayed, and
// its answer is no longer awaited.
//
// Threads: not thread-safe: the gate must call with its lock held.
class WorkerRoll {
 public:
  // Workers 0 to `total` - 1 take part.
  explicit WorkerRoll(int total) : total_(total) {}

  // Sets the workers that take part from now on, ascending; empty means all, as
  // at the start.
  void SetWorkers(const std::vector<int>& workers) { workers_ = workers; }
  int count() const {
    return workers_.empty() ? total_ : static_cast<int>(workers_.size());
  }
  bool TakesPart(int worker) const;

  // Checks that the worker of the pass takes part.
  //
  //   kInvalidArgument     it is no worker of the job
  //   kFailedPrecondition  it takes no part now: it must register again
  absl::Status CheckTakesPart(const Pass& pass) const;
  // Checks that the pass is of the newest process of its worker.
  //
  //   kInvalidArgument     the incarnation is beyond any that a clock gives
  //   kFailedPrecondition  a newer incarnation of the worker has called
  absl::Status CheckIncarnation(const Pass& pass) const;

  // Records a pass; `waits` says that its worker waits after it. False if a
  // newer pass of the worker is known.
  bool Note(const Pass& pass, bool waits);

  // Records that the worker's incarnations up to `incarnation` are dead.
  // Returns the oldest incarnation that is still admitted.
  uint64_t Expire(int worker, uint64_t incarnation);
  // True if a newer incarnation has replaced that of `pass`.
  bool IsReplaced(const Pass& pass) const;
  // The newest incarnation that has called; 0: none has.
  uint64_t NewestIncarnation(int worker) const;

 private:
  struct Newest {
    uint64_t incarnation = 0;
    int64_t pass = 0;
    bool waits = false;  // after having announced

    auto operator<=>(const Newest&) const = default;
  };

  const int total_;
  std::vector<int> workers_;
  std::map<int, Newest> newest_;
};

// Checks that the step of the pass has begun where the global step is
// `global_step`.
//
//   kFailedPrecondition  it has not: the worker has seen commits that are lost
absl::Status CheckBegun(const Pass& pass, int64_t global_step);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_WORKER_ROLL_H_
