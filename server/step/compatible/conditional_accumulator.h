#ifndef LOCKSTEP_SERVER_STEP_COMPATIBLE_CONDITIONAL_ACCUMULATOR_H_
#define LOCKSTEP_SERVER_STEP_COMPATIBLE_CONDITIONAL_ACCUMULATOR_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/numeric/dtype.h"
#include "server/step/gradient.h"

namespace lockstep::server {

// The outcome of a well-formed gradient.
enum class ApplyOutcome {
  kAccepted,  // it was added
  kStale,     // its step is over; nothing changed
};

// ConditionalAccumulator sums the gradients of one variable for the current
// step and hands the sum out once enough have arrived. `Sum` defines the form
// of a gradient: DenseSum or SparseSum.
//
// Time step: gradients stamped with an earlier step are stale. Each completed
// take increases it by one; only SetGlobalStep() changes it otherwise.
//
// Threads: safe to share. No call waits: a take that cannot be answered yet is
//          stored under its id, and the call that ends it returns it.
// Errors:  a call that fails has changed nothing, and so ends no take.
template <typename Sum>
class ConditionalAccumulator {
 public:
  using Options = typename Sum::Options;
  using View = typename Sum::View;    // a gradient that goes in
  using Value = typename Sum::Value;  // a gradient that comes out

  // A take that has ended. Only an OK one has the fields below `status`.
  struct Completed {
    uint64_t id = 0;
    absl::Status status;
    Value gradient;
    int64_t num_gradients = 0;  // summed; may exceed the number requested
    int64_t step = 0;           // the accumulator's, after this take
  };

  struct Applied {
    ApplyOutcome outcome = ApplyOutcome::kAccepted;
    int64_t step = 0;  // the accumulator's, after this call
    std::vector<Completed> completed;
  };

  struct StepChange {
    int64_t previous = 0;
    bool went_backwards = false;  // worth a warning, and legal
  };

  explicit ConditionalAccumulator(const Options& options)
      : dtype_(options.dtype), sum_(options) {}

  // Adds `gradient` unless it is stale. Checks staleness before the shape, as
  // TensorFlow does.
  //
  //   kInvalidArgument  element type, form, or (if not stale) shape or indices
  absl::StatusOr<Applied> Apply(int64_t local_step, const View& gradient)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests the sum of at least `num_required` gradients, in the name of `id`.
  // Requests are served in order of arrival: one in front that needs more holds
  // up those behind it. The result is empty if the request has to wait. Must
  // not be called for a request that is already cancelled.
  //
  //   kInvalidArgument  `num_required` < 1; an `id` that already waits
  absl::StatusOr<std::vector<Completed>> Take(uint64_t id, int64_t num_required)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes the number of gradients that a waiting take needs, which must be at
  // least 1. This may complete the take and those behind it. Empty if `id` does
  // not wait.
  std::vector<Completed> Require(uint64_t id, int64_t num_required)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a waiting take with kCancelled, which may complete those behind it.
  // The cancelled one comes first in the result. Empty if `id` does not wait.
  std::vector<Completed> Cancel(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the time step. The sum and the waiting takes stay.
  StepChange SetGlobalStep(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);

  // Gradients summed since the last completed take.
  int64_t num_accumulated() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return count_;
  }

  int64_t step() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return step_;
  }

 private:
  struct Pending {
    uint64_t id;
    int64_t num_required;
  };

  auto FindPending(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::find_if(pending_.begin(), pending_.end(),
                        [id](const Pending& take) { return take.id == id; });
  }
  Completed CompleteHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ServePending(std::vector<Completed>& completed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DType dtype_;

  mutable Mutex mutex_;
  Sum sum_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mutex_);
};

template <typename Sum>
auto ConditionalAccumulator<Sum>::Apply(int64_t local_step,
                                        const View& gradient)
    -> absl::StatusOr<Applied> {
  LOCKSTEP_RETURN_IF_ERROR(CheckForm(dtype_, gradient));
  MutexLock lock(mutex_);
  if (local_step < step_) return Applied{ApplyOutcome::kStale, step_, {}};
  LOCKSTEP_RETURN_IF_ERROR(sum_.Check(gradient, count_));
  sum_.Add(gradient, count_);
  ++count_;
  Applied applied;
  ServePending(applied.completed);
  applied.step = step_;
  return applied;
}

template <typename Sum>
auto ConditionalAccumulator<Sum>::Take(uint64_t id, int64_t num_required)
    -> absl::StatusOr<std::vector<Completed>> {
  if (num_required < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_required is ", num_required, ", must be at least 1"));
  }
  MutexLock lock(mutex_);
  if (FindPending(id) != pending_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("id ", id, " already waits; use another one"));
  }
  pending_.push_back({id, num_required});
  std::vector<Completed> completed;
  ServePending(completed);
  return completed;
}

template <typename Sum>
auto ConditionalAccumulator<Sum>::Require(uint64_t id, int64_t num_required)
    -> std::vector<Completed> {
  MutexLock lock(mutex_);
  const auto take = FindPending(id);
  if (take == pending_.end()) return {};
  take->num_required = num_required;
  std::vector<Completed> completed;
  ServePending(completed);
  return completed;
}

template <typename Sum>
auto ConditionalAccumulator<Sum>::Cancel(uint64_t id)
    -> std::vector<Completed> {
  MutexLock lock(mutex_);
  const auto take = FindPending(id);
  if (take == pending_.end()) return {};
  pending_.erase(take);
  std::vector<Completed> completed(1);
  completed.front().id = id;
  completed.front().status = absl::CancelledError("the take was cancelled");
  ServePending(completed);
  return completed;
}

template <typename Sum>
auto ConditionalAccumulator<Sum>::SetGlobalStep(int64_t step) -> StepChange {
  MutexLock lock(mutex_);
  const StepChange change{step_, step < step_};
  step_ = step;
  return change;
}

template <typename Sum>
auto ConditionalAccumulator<Sum>::CompleteHead() -> Completed {
  // Unsigned, because a step set to the largest number may still be taken.
  step_ = static_cast<int64_t>(static_cast<uint64_t>(step_) + 1);
  Completed completed{pending_.front().id, absl::OkStatus(),
                      sum_.HandOut(count_), count_, step_};
  pending_.pop_front();
  count_ = 0;
  return completed;
}

template <typename Sum>
void ConditionalAccumulator<Sum>::ServePending(
    std::vector<Completed>& completed) {
  while (!pending_.empty() && count_ >= pending_.front().num_required) {
    completed.push_back(CompleteHead());
  }
}

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_CONDITIONAL_ACCUMULATOR_H_
