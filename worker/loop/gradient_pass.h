#ifndef LOCKSTEP_WORKER_LOOP_GRADIENT_PASS_H_
#define LOCKSTEP_WORKER_LOOP_GRADIENT_PASS_H_

#include <cstddef>

#include "absl/status/status.h"

namespace lockstep::worker {

// GradientPass is the interface between the training loop and the code that
// computes one pass: which values the code may read, whether the result is
// still wanted, and where to report gradients. A GradientSource that wraps
// another one passes on this object or a wrapper of it.
//
// The base class is a pass whose values are in memory, whose gradients are not
// sent, and which is always wanted.
//
// Threads: methods must be called in the thread that computes the pass.
class GradientPass {
 public:
  GradientPass() = default;
  virtual ~GradientPass() = default;
  GradientPass(const GradientPass&) = delete;
  GradientPass& operator=(const GradientPass&) = delete;

  // False if values may arrive while the pass is computed. Constant.
  virtual bool HasAllValues() const { return true; }

  // Returns once the values of variables [first, first + count) may be read.
  // Must be called before the pass reads them for the first time, layer by
  // layer, the first layer first.
  //
  //   kAborted  the values will not arrive, or the pass is not wanted any more
  virtual absl::Status NeedValues(size_t /*first*/, size_t /*count*/) {
    return CheckWanted();
  }

  // Pulls the rows of tables that were chosen anew since the pass began. All
  // other values stay as they are. Must not be called after GradientReady().
  //
  //   kAborted  the step is over, or the pass is not wanted any more
  //   others    of StepClient::Pull(); they end the training loop
  virtual absl::Status PullRows() { return CheckWanted(); }
  // Must be called between two batches of one pass: as PullRows(), and pulls
  // the values that the batch before has taken from memory. Errors as
  // PullRows().
  virtual absl::Status PullNextBatch() { return CheckWanted(); }

  // Should be called between layers.
  //
  //   kAborted  the rest of the pass is not wanted
  virtual absl::Status CheckWanted() { return absl::OkStatus(); }

  // Must be called once for each variable, the last layer's first, when its
  // gradient is final and the pass does not read its value any more. From then
  // on the gradient may be sent and the value be overwritten while the pass
  // goes on.
  virtual void GradientReady(size_t /*variable*/) {}

  // Must be called in place of GradientReady() for a variable without a
  // gradient in this pass, after its memory was filled with zeros. In strict
  // mode a step does not change a variable that has no gradient from any
  // member; everywhere else the zeros count as its gradient.
  virtual void GradientAbsent(size_t variable) { GradientReady(variable); }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_PASS_H_
