#ifndef LOCKSTEP_SERVER_STEP_STRICT_PART_WORK_H_
#define LOCKSTEP_SERVER_STEP_STRICT_PART_WORK_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/step/engine.h"

namespace lockstep::server {

// The source of a gradient: worker and slot; or, if work is shared, number and
// 0. Gradients are summed in the order of their contributors.
using Contributor = std::pair<int, int>;

// The arithmetic for one part that has all its gradients, done by one thread.
struct PartWork {
  enum class Kind {
    kUpdate,   // from the gradients
    kMeasure,  // keep and measure their mean
    kKeep,     // keep and measure the mean that another mirror has computed
    kApply     // update from that mean
  };
  Kind kind = Kind::kUpdate;
  int part = 0;
  int64_t step = 0;
  int64_t attempt = 0;
  std::vector<Contributor> contributors = {};
  // One per contributor; of kKeep the mean.
  std::vector<PartGradient> gradients = {};
  double norm = 0;  // of kApply, if the norm is limited
  // Results: gradients that are not finite, and the sum of squares of a mean.
  std::map<Contributor, absl::Status> refused = {};
  double squares = 0;
};

// BlockedWork is work that waits for readers of the memory it writes to, at
// most one piece for each part.
//
// Threads: not thread-safe.
class BlockedWork {
 public:
  // Replaces what the part had, which is of an older attempt.
  void Add(PartWork work);
  // Returns the work on a part whose readers are gone; empty if it has none.
  std::vector<PartWork> TakeOut(int part);

  // The parts that have work, ascending.
  std::vector<int> parts() const;
  int64_t size() const { return static_cast<int64_t>(by_part_.size()); }

 private:
  std::map<int, PartWork> by_part_;
};

// Does the work. If the mean is not finite and `refuse_non_finite` is set,
// fills in `refused` with the gradients that are not finite. Errors: those of
// the updater.
absl::Status Perform(PartUpdater& updater, bool refuse_non_finite,
                     PartWork& work);

// Calls `run` with shares of the work of about equal size, in several threads
// if the work is large enough, and returns when all calls have ended.
void ForEachShare(const PartUpdater& updater, std::vector<PartWork> work,
                  absl::FunctionRef<void(std::vector<PartWork>)> run);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_STRICT_PART_WORK_H_
