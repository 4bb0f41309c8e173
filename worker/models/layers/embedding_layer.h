#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_EMBEDDING_LAYER_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_EMBEDDING_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer.h"

namespace lockstep::worker {

// EmbeddingLayer adds a vector for each token and one for its position: int32
// [n,t] becomes [n*t,width]. Must be the first layer of a model. Variables:
// NAME/tokens [tokens,width], NAME/positions [positions,width].
//
// Threads: as Layer.
class EmbeddingLayer final : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t tokens = 0;     // ids are in [0, tokens)
    int64_t positions = 0;  // tokens of the longest sequence
    int64_t width = 0;
  };

  EmbeddingLayer(const Options& options, ElementType type);

  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  // Tokens have no gradient: `in_gradient` must be null.
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  ConstTensor in_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_EMBEDDING_LAYER_H_
