#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_DENSE_LAYER_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_DENSE_LAYER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer.h"

namespace lockstep::worker {

// DenseLayer computes out = in W + b, and max(out, 0) with `relu`: `in` [n,...]
// of `inputs` elements per example becomes [n,units]. Variables: NAME/weights
// [inputs,units], NAME/bias [units].
//
// Threads: as Layer.
class DenseLayer final : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t inputs = 0;  // elements per example
    int64_t units = 0;
    bool relu = false;
    // Default: kHeNormal before a ReLU, else kGlorotUniform. Weights of stacked
    // layers must not all start at 0, or they never learn. The bias starts at
    // 0.
    std::optional<Initializer> weights = {};
  };

  DenseLayer(const Options& options, ElementType type);

  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  const bool relu_;

  // Views of the last Forward().
  ConstTensor in_;
  Tensor out_;
};

// Appends one layer with ReLU for each entry of `hidden_units`, named hidden1,
// hidden2 and so on, and one without, named "logits", of `outputs` units.
void AppendDense(int64_t inputs, absl::Span<const int64_t> hidden_units,
                 int64_t outputs, ElementType type,
                 std::vector<std::unique_ptr<Layer>>& layers);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_DENSE_LAYER_H_
