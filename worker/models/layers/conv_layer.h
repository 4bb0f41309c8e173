#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_CONV_LAYER_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_CONV_LAYER_H_

#include <string>
#include <vector>

#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer.h"

namespace lockstep::worker {

// ConvLayer is a square convolution with bias, then max(out, 0), then a 2x2
// max-pool that halves height and width, rounding up: [n,h,w,channels] becomes
// [n,ceil(h/2),ceil(w/2),filters]. Variables: NAME/filters
// [kernel_size,kernel_size,channels,filters], NAME/bias [filters].
//
// Threads: as Layer.
class ConvLayer final : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t kernel_size = 0;  // odd, in pixels
    int64_t channels = 0;     // of the input
    int64_t filters = 0;
  };

  ConvLayer(const Options& options, ElementType type);

  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  absl::Status Reserve(ComputeBackend& backend, const ConstTensor& in);

  // Views of the last Forward().
  ConstTensor in_;
  Tensor activation_;  // before the pool
  Tensor argmax_;
  Tensor out_;

  Scratch activation_memory_;
  Scratch activation_gradient_memory_;
  Scratch argmax_memory_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_CONV_LAYER_H_
