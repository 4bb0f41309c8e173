#ifndef LOCKSTEP_WORKER_LOOP_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_LOOP_GRADIENT_SOURCE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/loop/pass_hooks.h"

namespace lockstep {

// What computing a gradient gave.
struct GradientResult {
  double loss = 0;  // mean over the batch
  int64_t examples = 0;
  int64_t non_finite = 0;  // elements of the gradients that are NaN or infinite
};

// GradientSource computes gradients from the variables in the worker's memory
// into it, for one batch at a time.
class GradientSource {
 public:
  virtual ~GradientSource() = default;

  // Chooses what Compute() of the same batch will need of the variables: the
  // rows of tables, before they are pulled.
  //
  //   kOutOfRange  as in Compute()
  virtual absl::Status Prepare(int64_t /*index*/) { return absl::OkStatus(); }

  // Whether Compute() calls before_use and before_gradients of its hooks, and
  // needs no Prepare(): it may begin before the values are there.
  virtual bool WaitsForValues() const { return false; }

  //   kOutOfRange  the end of input: there is no batch `index`
  //   kAborted     the hooks said that the pass is not wanted
  virtual absl::StatusOr<GradientResult> Compute(int64_t index,
                                                 const PassHooks& hooks) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_SOURCE_H_
