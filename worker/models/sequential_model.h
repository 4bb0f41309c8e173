#ifndef LOCKSTEP_WORKER_MODELS_SEQUENTIAL_MODEL_H_
#define LOCKSTEP_WORKER_MODELS_SEQUENTIAL_MODEL_H_

#include <memory>
#include <vector>

#include "worker/models/layers/layer.h"
#include "worker/models/layers/layer_stack.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// SequentialModel is a model of layers in sequence: each layer's input is the
// output of the one before, and the last output is the logits. Its variables
// are those of the layers, in order.
//
// Threads: as Model.
class SequentialModel final : public Model {
 public:
  //   kInvalidArgument  no layers, or a variable that is too large, which the
  //                     message names
  static absl::StatusOr<std::unique_ptr<Model>> Make(const ModelInput& input,
                                                     ElementType type,
                                                     Layers layers);

  bool random() const override { return stack_.random(); }

 private:
  SequentialModel(const ModelInput& input, ElementType type,
                  std::vector<VariableSpec> variables, Layers layers);

  absl::StatusOr<Tensor> Forward(ComputeBackend& backend, const ConstTensor& in,
                                 absl::Span<const ConstTensor> variables,
                                 GradientPass& pass) override;
  absl::Status Backward(ComputeBackend& backend,
                        absl::Span<const ConstTensor> variables,
                        const Tensor& logits_gradient,
                        absl::Span<const Tensor> gradients,
                        GradientPass& pass) override;

  LayerStack stack_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_SEQUENTIAL_MODEL_H_
