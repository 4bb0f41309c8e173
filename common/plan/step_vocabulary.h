#ifndef LOCKSTEP_COMMON_PLAN_STEP_VOCABULARY_H_
#define LOCKSTEP_COMMON_PLAN_STEP_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/plan/run_settings.h"

namespace lockstep {

// The words that chief, servers and workers share about a step.

// A pass of a worker, as the worker names it: the gradient of share `slot` of
// global step `step`. In shared work, `slot` is the number of a micro-batch,
// the first one of a block.
struct PassId {
  int64_t step = 0;
  int64_t number = 0;  // counts the incarnation's passes, from 1; 0: none yet
  int slot = 0;        // 0 unless strict mode and N < A, or shared work
  int block = 1;       // shared work: numbers of a block, a power of two

  bool operator==(const PassId&) const = default;
};

// A pass with its worker, as a server knows it.
struct Pass {
  int worker = 0;
  uint64_t incarnation = 0;
  int64_t local_step = 0;
  int64_t pass = 0;  // counts the incarnation's passes, from 1
  int slot = 0;      // 0 unless strict mode and N < A, or shared work
  int block = 1;     // as in PassId; of pushes unused
};

// The norm over all servers of the mean gradients of an attempt of a step.
struct MeanNorm {
  int64_t attempt = 0;
  double norm = 0;

  bool operator==(const MeanNorm&) const = default;
};

// The answer of ps task 0 to a worker's announcement of a pass.
enum class Decision { kSelected, kNotNeeded, kTooLate };

// The outcome of one part of a push.
enum class PushOutcome { kAccepted, kStale, kDuplicate, kSuperseded };

// The facts about a worker that servers keep for a chief that has no record of
// it.
struct WorkerStanding {
  int worker = 0;
  // Incarnations above this one are not admitted, until ExpireWorker() names a
  // higher one.
  std::optional<uint64_t> shut_out_above{};
  bool input_ended = false;  // it has used up its data

  bool operator==(const WorkerStanding&) const = default;
};

// The orders of a chief to a server that opens its shard.
struct Opening {
  int64_t global_step = 0;
  std::vector<float> scalars{};  // the optimizers'; empty: those of step 0
  // The attempt with which the uncommitted step begins anew; 0: the step
  // continues.
  int64_t attempt = 0;
  // Workers whose incarnations up to the given one must be refused.
  std::vector<std::pair<int, uint64_t>> expired{};
  std::vector<WorkerStanding> workers{};
  RunSettings settings{};
};

// The step of a worker that has died, and the claims that it had on the step.
struct ExpiredWorker {
  bool held_announcement = false;
  bool held_token = false;
  int64_t step = 0;          // the current step
  int64_t attempt = 0;       // and its attempt from now on
  uint64_t incarnation = 0;  // the newest one that is refused
};

// The result of replacing a member that holds up its step.
struct ReplacedMember {
  // The worker that takes the place; nullopt: no change.
  std::optional<int> by{};
  int64_t step = 0;     // the current step
  int64_t attempt = 0;  // and its attempt from now on
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_STEP_VOCABULARY_H_
