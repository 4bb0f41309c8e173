#ifndef LOCKSTEP_COMMON_PLAN_PROGRESS_H_
#define LOCKSTEP_COMMON_PLAN_PROGRESS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/plan/figure.h"

namespace lockstep {

// The time that a worker computed a pass, without its waits for other
// processes.
struct PassTime {
  absl::Duration computed;
  bool dropped = false;  // half-way: the whole pass would have taken longer

  bool operator==(const PassTime&) const = default;
};

// The kind of a process's activity.
enum class ActivityKind : int {
  kOther = 0,     // or not reported
  kWaits = 1,     // for other processes or for data
  kComputes = 2,  // a pass; it ends without other processes
};

// Progress is a worker's report in each heartbeat, counted since its
// incarnation began. It counts passes, not parts: a pass whose gradient was not
// needed is stale, even if its bytes were sent, and so is a pass that was
// dropped before it had a gradient.
struct Progress {
  static constexpr size_t kPassTimes = 32;  // at most, of `pass_times`
  // No count of a heartbeat is above this, so that neither the difference of
  // two nor the sum over all workers of a job overflows.
  static constexpr int64_t kMostCounted = int64_t{1} << 48;

  int64_t local_step = 0;
  int64_t passes = 0;           // gradients computed
  int64_t accepted = 0;         // passes that counted
  int64_t stale = 0;            // passes that came too late or were not needed
  int64_t duplicate = 0;        // parts that had counted already
  absl::Duration waiting = {};  // total, for servers, tokens and data
  double loss = 0;              // mean loss of the last pass; NaN if it is old
  int64_t examples = 0;         // examples computed on
  std::string activity = {};    // e.g. "waits for a token", for people
  ActivityKind activity_kind = ActivityKind::kOther;
  absl::Duration activity_age = {};
  int64_t non_finite = 0;  // elements of gradients that were NaN or infinite;
                           // not in heartbeats, but in the worker's metrics
  int64_t computed = 0;    // passes that `examples` were computed in
  // An obstacle to the process's work, as text for operators; empty: none.
  std::string trouble = {};
  // Evaluator: it cannot score the newest checkpoint; `trouble` says why.
  bool cannot_score = false;
  std::vector<NamedFigure> figures = {};  // of the user's program, last pass
  // The newest of `passes`, oldest first.
  std::vector<PassTime> pass_times = {};
  absl::Duration pass_age = {};  // computed so far of the current pass
  // Totals of shared work. Waits for the end of a push count; the time of
  // sending while the worker computes does not.
  int64_t micro_batches = 0;  // computed
  absl::Duration micro_batches_time = {};
  int64_t pushes = 0;
  absl::Duration pushes_time = {};

  // True if `loss` is a finite one of a recent pass: before the first, and of a
  // worker whose passes have all been dropped, it is not. A program's passes
  // may have no examples, and a worker in another language may report its loss
  // alone: only a loss of 0 needs a count beside it.
  bool HasLoss() const {
    return (examples > 0 || computed > 0 || loss != 0) && std::isfinite(loss);
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_PROGRESS_H_
