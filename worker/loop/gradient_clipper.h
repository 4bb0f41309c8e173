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
//   BeginPass -> Ready, once for each variable -> EndPass
//
// Threads: not thread-safe.
// Borrows: the memory of the gradients.
class GradientClipper {
 public:
  // By variable, whole elements of one type; of a table, the rows of the pass.
  using Gradients = std::vector<absl::Span<std::byte>>;
  using Send = absl::FunctionRef<void(size_t variable)>;

  // `gradients` returns where the gradients of the pass at hand are.
  GradientClipper(const ClippingConfig& config, DType dtype,
                  std::function<Gradients()> gradients)
      : config_(config), dtype_(dtype), gradients_(std::move(gradients)) {}

  // A pass begins: forgets the gradients that the pass before kept back.
  void BeginPass() { kept_.clear(); }

  // The gradient of `variable` is final: clips it and calls `send`, or keeps it
  // back.
  void Ready(size_t variable, Send send);

  // Clips the gradients that were kept back and calls `send` for each, in the
  // order of Ready(). Must be called only after the pass has computed all
  // gradients.
  void EndPass(Send send);

 private:
  const ClippingConfig config_;
  const DType dtype_;
  const std::function<Gradients()> gradients_;
  std::vector<size_t> kept_;
};

// Returns the type of the gradients that clipping computes in.
//
//   kInvalidArgument  workers clip gradients of variables of different types
absl::StatusOr<DType> ClippedType(const ClippingConfig& clipping,
                                  const std::vector<VariableSpec>& variables);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_GRADIENT_CLIPPER_H_
