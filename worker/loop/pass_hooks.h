#ifndef LOCKSTEP_WORKER_LOOP_PASS_HOOKS_H_
#define LOCKSTEP_WORKER_LOOP_PASS_HOOKS_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace lockstep {

// PassHooks is what a pass tells and asks while it runs, in the thread that
// computes. Each may be empty.
struct PassHooks {
  // Hears of each variable once, the last layer's first: its gradient is final
  // and its value is not read any more in this pass. From then on the gradient
  // may be sent and the value be overwritten while the pass goes on.
  std::function<void(size_t variable)> on_gradient = nullptr;
  // Asked between layers: whether nobody wants the rest of the pass.
  std::function<bool()> unwanted = nullptr;
  // Called before the pass reads the values of variables [first, first + count)
  // for the first time: they may still be on their way.
  std::function<absl::Status(size_t first, size_t count)> before_use = nullptr;
  // Called once, before the pass writes any gradient: those of the pass before
  // may still be needed.
  //
  //   kAborted  what the pass has read has come to nothing
  std::function<absl::Status()> before_gradients = nullptr;

  void Report(size_t variable) const {
    if (on_gradient) on_gradient(variable);
  }

  absl::Status BeforeUse(size_t first, size_t count) const {
    return before_use ? before_use(first, count) : absl::OkStatus();
  }

  absl::Status BeforeGradients() const {
    return before_gradients ? before_gradients() : absl::OkStatus();
  }

  //   kAborted  the rest of the pass is not wanted
  absl::Status CheckWanted() const {
    if (!unwanted || !unwanted()) return absl::OkStatus();
    return absl::AbortedError("nobody wants the rest of the pass");
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_PASS_HOOKS_H_
