#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_LAYER_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_LAYER_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/variable_spec.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/tensor/tensor.h"
#include "worker/models/layers/pass_context.h"

namespace lockstep::worker {

// The arguments of a layer's backward pass. The spans hold only the layer's own
// variables, in its order.
struct BackwardPass {
  ComputeBackend& backend;
  absl::Span<const ConstTensor> variables;
  absl::Span<const Tensor> gradients;
  absl::FunctionRef<void(size_t variable)> on_gradient;
};

// Layer is one step of a sequential model, with the memory of its last pass.
// The comment of each class has the shapes of its input and output; a gradient
// has the shape of its tensor.
//
// Threads: not thread-safe.
// Errors:  those of the backend.
class Layer {
 public:
  virtual ~Layer() = default;

  const std::vector<VariableSpec>& variables() const { return variables_; }

  // Must be called before each Forward().
  virtual void BeginPass(const PassContext& /*context*/) {}

  // True if training passes depend on the key of their context.
  virtual bool random() const { return false; }

  // Returns a tensor of the backend that is valid until the next call. `in`
  // must not change before Backward() has returned, if that follows.
  virtual absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) = 0;

  // Must follow Forward(). Writes the gradients, and `in_gradient`, shaped as
  // `in` was, unless it is null. Calls `on_gradient` once for each variable,
  // when its gradient is final and its value is not read any more. Overwrites
  // `out_gradient`.
  virtual absl::Status Backward(const BackwardPass& pass,
                                const Tensor& out_gradient,
                                const Tensor* in_gradient) = 0;

 protected:
  explicit Layer(ElementType type, std::vector<VariableSpec> variables = {})
      : type_(type), variables_(std::move(variables)) {}

  // Returns memory for the result of a pass; it is kept for the next one.
  absl::StatusOr<Tensor> Out(ComputeBackend& backend, Shape shape) {
    return out_memory_.Reserve(backend, type_, std::move(shape));
  }

  const ElementType type_;  // of all tensors but tokens

 private:
  const std::vector<VariableSpec> variables_;
  Scratch out_memory_;
};

using Layers = std::vector<std::unique_ptr<Layer>>;

// True if any layer draws random numbers.
bool AnyRandom(const Layers& layers);

// The variables of all layers, in order.
std::vector<VariableSpec> VariablesOf(const Layers& layers);

// Returns the type that variables with tensors of `type` have in plans and
// memory.
DType VariableType(ElementType type);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_LAYER_H_
