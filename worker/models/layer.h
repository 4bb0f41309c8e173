#ifndef LOCKSTEP_WORKER_MODELS_LAYER_H_
#define LOCKSTEP_WORKER_MODELS_LAYER_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/variable_spec.h"
#include "worker/compute/compute_backend.h"
#include "worker/compute/tensor.h"

namespace lockstep {

// What a layer needs to go backward. The spans hold the layer's own variables
// alone, in its order.
struct BackwardPass {
  ComputeBackend& backend;
  absl::Span<const ConstTensor> variables;
  absl::Span<const Tensor> gradients;
  absl::FunctionRef<void(size_t variable)> on_gradient;
};

// Layer is one step of a sequential model, with the memory of its last pass.
//
// Threads: not thread-safe.
// Errors:  those of the backend.
class Layer {
 public:
  virtual ~Layer() = default;

  virtual const std::vector<VariableSpec>& variables() const = 0;

  // The result is good until the next call; `in` must be, too.
  virtual absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) = 0;

  // After Forward(): writes the gradients, and `in_gradient`, shaped as `in`
  // was, unless it is null. Calls `on_gradient` for each variable as PassHooks
  // says: once nothing reads its value any more. Uses up `out_gradient`: its
  // contents are lost.
  virtual absl::Status Backward(const BackwardPass& pass,
                                const Tensor& out_gradient,
                                const Tensor* in_gradient) = 0;
};

// The element type that variables of a tensor type have outside.
DType VariableType(ElementType type);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_MODELS_LAYER_H_
