#ifndef LOCKSTEP_WORKER_MODELS_LAYERS_PLAIN_LAYERS_H_
#define LOCKSTEP_WORKER_MODELS_LAYERS_PLAIN_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker/compute/backend/scratch.h"
#include "worker/models/layers/layer.h"

// Layers without variables, and a convolution without bias or activation.
// Unless shapes are given, the input may have any shape, and the output has the
// same.
namespace lockstep::worker {

// ReluLayer is max(in, 0), element by element.
//
// Threads: as Layer.
class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(ElementType type) : Layer(type) {}
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  Tensor out_;
};

// ActivationLayer computes a function of each element; see Activation.
//
// Threads: as Layer.
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(Activation kind, ElementType type)
      : Layer(type), kind_(kind) {}
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  const Activation kind_;
  ConstTensor in_;
};

// DropoutLayer, in training, replaces a share `rate` of the elements by zeros
// and multiplies the others by 1 / (1 - rate). The layers of a model must have
// different salts, so that their random numbers differ.
//
// Threads: as Layer.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(double rate, uint64_t salt, ElementType type)
      : Layer(type), rate_(rate), salt_(salt) {}
  void BeginPass(const PassContext& context) override;
  bool random() const override { return rate_ > 0; }
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  const double rate_;
  const uint64_t salt_;
  DropoutOptions options_;  // of this pass
};

// GlobalAveragePoolLayer is the mean over each image: [n,h,w,c] becomes [n,c].
//
// Threads: as Layer.
class GlobalAveragePoolLayer final : public Layer {
 public:
  explicit GlobalAveragePoolLayer(ElementType type) : Layer(type) {}
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  int64_t window_ = 1;
};

// AttentionLayer is causal self-attention of `heads` over rows [n*t,3d] of
// queries, keys and values, into [n*t,d]; t is PassContext::length. `heads`
// must divide d.
class AttentionLayer final : public Layer {
 public:
  AttentionLayer(int64_t heads, ElementType type)
      : Layer(type), heads_(heads) {}
  void BeginPass(const PassContext& context) override {
    length_ = context.length;
  }
  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  // Returns the shape [n, t, width] of `rows` [n * t, width].
  Shape Sequences(const ConstTensor& rows) const;

  const int64_t heads_;
  int64_t length_ = 1;
  ConstTensor in_;
  ConstTensor out_;
  Tensor kept_;  // as of ComputeBackend::KeptByAttention()
  Scratch kept_memory_;
};

// ConvolutionLayer is a square convolution without a bias, with zeros around
// the image: [n,h,w,channels] becomes
// [n,ceil(h/stride),ceil(w/stride),filters]. Variable: NAME/filters
// [kernel_size,kernel_size,channels,filters].
//
// Threads: as Layer.
class ConvolutionLayer final : public Layer {
 public:
  struct Options {
    std::string name;
    int64_t kernel_size = 3;  // odd
    int64_t channels = 0;
    int64_t filters = 0;
    int64_t stride = 1;
  };

  ConvolutionLayer(const Options& options, ElementType type);

  absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables) override;
  absl::Status Backward(const BackwardPass& pass, const Tensor& out_gradient,
                        const Tensor* in_gradient) override;

 private:
  const Conv2DOptions options_;
  ConstTensor in_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_LAYERS_PLAIN_LAYERS_H_
