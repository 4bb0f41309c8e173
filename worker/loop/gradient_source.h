#ifndef LOCKSTEP_WORKER_LOOP_GRADIENT_SOURCE_H_
#define LOCKSTEP_WORKER_LOOP_GRADIENT_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/step_vocabulary.h"
#include "worker/loop/gradient_pass.h"

namespace lockstep::worker {

// The result of a pass, besides its gradients.
struct GradientResult {
  double loss = 0;  // mean over the batch
  int64_t examples = 0;
  int64_t non_finite = 0;  // elements of the gradients that are NaN or infinite
};

// Returns the result of a pass of several replicas, of which there must be at
// least one: the mean of the losses, and the sums of the counts.
GradientResult ResultOfReplicas(absl::Span<const GradientResult> replicas);

// GradientSource computes gradients, one batch at a time: it reads the values
// of variables in the worker's memory and writes gradients there. A pass has
// two halves, so that its caller can act in between:
//
//   Prepare -> Begin (reads values) -> Finish (writes gradients)
//
// Begin() may be called at any time: it drops a pass that is not finished.
//
// Threads: not thread-safe.
class GradientSource {
 public:
  virtual ~GradientSource() = default;

  // Chooses the rows of tables that the pass of batch `index` will read, before
  // the loop pulls them. `pass` must have its step and slot.
  //
  //   kOutOfRange  as in Begin()
  virtual absl::Status Prepare(const PassId& /*pass*/, int64_t /*index*/) {
    return absl::OkStatus();
  }

  // True if Begin() needs no Prepare() and waits for values where it reads
  // them, so that it may be called before they are in memory.
  virtual bool MayBeginEarly() const { return false; }
  // Must be called in place of Prepare() before a Begin() whose values are not
  // in memory. `pass` must have its step and slot.
  virtual void PrepareEarly(const PassId& /*pass*/) {}

  // Computes the part of the pass of batch `index` that writes no gradient: the
  // memory of gradients may still hold those of the pass before.
  //
  //   kOutOfRange  the end of input: there is no batch `index`
  //   kAborted     as GradientPass
  virtual absl::Status Begin(int64_t index, GradientPass& pass) = 0;

  // Computes the rest of the pass that Begin() has begun, and writes its
  // gradients. `pass` may be another object than that of Begin().
  //
  //   kAborted  as GradientPass
  virtual absl::StatusOr<GradientResult> Finish(GradientPass& pass) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_SOURCE_H_
