#ifndef LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPER_H_
#define LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPER_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"
#include "common/plan/variable_spec.h"

namespace lockstep::worker {

// GradientClipper limits the gradients of a pass in memory, before they are
// sent. The global norm is that of all gradients, so it keeps them all back to
// the end of the pass; the other kinds of clipping take each gradient by
// itself.
//
//   BeginPass -> Ready or Absent, once for each variable -> EndPass
//
// Threads: not thread-safe.
// Borrows: the memory of the gradients.
class GradientClipper {
 public:
  // One span per variable, in the order of the plan: whole elements of one
  // type. The span of a table holds the rows of the pass.
  using Gradients = std::vector<absl::Span<std::byte>>;
  // `absent` tells Absent() from Ready().
  using Send = absl::FunctionRef<void(size_t variable, bool absent)>;

  // `gradients` returns the memory of the current pass's gradients; it is
  // called again for each Ready() and EndPass(), as rows may lie elsewhere in
  // each pass.
  GradientClipper(const ClippingConfig& config, DType dtype,
                  std::function<Gradients()> gradients)
      : config_(config), dtype_(dtype), gradients_(std::move(gradients)) {}

  // Must be called before the first Ready() or Absent() of a pass. Forgets the
  // gradients that a dropped pass kept back.
  void BeginPass() { kept_.clear(); }

  // Clips the gradient of `variable`, which must be final, and calls `send`;
  // with kGlobalNorm, keeps it back for EndPass() instead.
  void Ready(size_t variable, Send send);

  // Calls `send` for a variable without a gradient, whose memory must hold
  // zeros; with kGlobalNorm, keeps it back for EndPass() instead. The order of
  // the calls of `send` thus never depends on which variables are absent.
  void Absent(size_t variable, Send send);

  // Clips the gradients that were kept back and calls `send` for each, in the
  // order of Ready() and Absent(). Must be called only after the pass has
  // computed all gradients.
  void EndPass(Send send);

 private:
  struct Kept {
    size_t variable = 0;
    bool absent = false;
  };

  const ClippingConfig config_;
  const DType dtype_;
  const std::function<Gradients()> gradients_;
  std::vector<Kept> kept_;
};

// Returns the type of the gradients that clipping computes in.
//
//   kInvalidArgument  workers clip gradients of variables of different types
absl::StatusOr<DType> ClippedType(const ClippingConfig& clipping,
                                  const std::vector<VariableSpec>& variables);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPER_H_
