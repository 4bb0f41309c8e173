#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_NORM_LAYERS_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_NORM_LAYERS_H_

#include <string>
#include <vector>

#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer.h"

namespace lockstep::worker {

// LayerNormLayer normalises each row of its input [rows,width]; the output has
// that shape. Variables: NAME/scale [width], NAME/shift [width].
//
// Threads: as Layer.
class LayerNormLayer final : public Layer {
 public:
  LayerNormLayer(const std::string& name, int64_t width, ElementType type);

  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  ConstTensor in_;  // of the last Forward(), like statistics_
  Tensor statistics_;
  Scratch statistics_memory_;
  Scratch in_gradient_memory_;
};

// BatchNormLayer normalises each channel of images [n,h,w,channels]: in
// training by the mean and variance of the worker's own batch, otherwise by
// moving ones. The output has the shape of the input.
//
// Variables, all [channels]: NAME/scale, NAME/shift, NAME/moving_mean,
// NAME/moving_variance. The moving statistics are buffers, so all workers and
// the evaluator share them. The layer pushes 0.1 (value - statistic) for them,
// and servers subtract its mean over the workers: the values move by a tenth of
// the way to the step's own, as PyTorch's do by default.
class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const std::string& name, int64_t channels, ElementType type);

  void BeginPass(const PassContext& context) override {
    training_ = context.training;
  }
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  absl::Status MovingGradient(const BackwardPass& pass, size_t variable,
                              int64_t row);
  absl::Status CopyMoving(ComputeBackend& backend,
                          absl::Span<const ConstTensor> variables);
  // A view of row `row` of the statistics: 0 means, 1 variances.
  Tensor Statistic(int64_t row) const;

  bool training_ = true;
  ConstTensor in_;     // of the last Forward(), [pixels, channels], as below
  Tensor statistics_;  // [2, channels]
  Scratch statistics_memory_;
  Scratch in_gradient_memory_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_NORM_LAYERS_H_
