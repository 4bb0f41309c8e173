#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_LAYER_STACK_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_LAYER_STACK_H_

#include <vector>

#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer.h"

namespace lockstep::worker {

// LayerStack is a sequence of layers as one layer: from the shape of the first
// layer's input to that of the last one's output. Forward() and Backward() must
// not be called on an empty stack.
//
// Threads: as Layer.
class LayerStack final : public Layer {
 public:
  // Called before each layer, with the range of its variables [first, first +
  // count); an error ends the pass.
  using BeforeLayer =
      absl::FunctionRef<absl::Status(size_t first, size_t count)>;

  LayerStack(Layers layers, ElementType type);

  bool empty() const { return steps_.empty(); }
  void BeginPass(const PassContext& context) override;
  bool random() const override { return random_; }
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;
  // As above, with a call of `before` before each layer.
  absl::StatusOr<Tensor> Forward(ComputeBackend& backend, const ConstTensor& in,
                                 absl::Span<const ConstTensor> variables,
                                 BeforeLayer before);
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient, BeforeLayer before);

 private:
  struct Step {
    std::unique_ptr<Layer> layer;
    size_t first_variable = 0;
    Shape in_shape;  // of the last Forward()

    size_t count() const { return layer->variables().size(); }
  };

  const bool random_;
  std::vector<Step> steps_;
  Scratch between_[2];  // gradients: a step reads one and writes the other
};

// ResidualLayer computes out = branch(in) + shortcut(in); an empty shortcut is
// `in` itself. The sum replaces the output of the branch's last layer, so the
// gradient of that layer must not need its output.
//
// Threads: as Layer.
class ResidualLayer final : public Layer {
 public:
  ResidualLayer(Layers branch, Layers shortcut, ElementType type);

  void BeginPass(const PassContext& context) override;
  bool random() const override {
    return branch_.random() || shortcut_.random();
  }
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  LayerStack branch_;
  LayerStack shortcut_;
  Shape in_shape_;
  Scratch out_gradient_copy_;
  Scratch branch_gradient_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_LAYER_STACK_H_
