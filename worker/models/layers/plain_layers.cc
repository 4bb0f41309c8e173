#include "worker/models/layers/plain_layers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<Tensor> ReluLayer::Forward(ComputeBackend& backend,
                                          const ConstTensor& in,
                                          absl::Span<const ConstTensor>) {
  LOCKSTEP_ASSIGN_OR_RETURN(out_, Out(backend, in.shape()));
  LOCKSTEP_RETURN_IF_ERROR(backend.Relu(in, out_));
  return out_;
}

absl::Status ReluLayer::Backward(const BackwardPass& pass,
                                 const Tensor& out_gradient,
                                 const Tensor* in_gradient) {
  if (in_gradient == nullptr) return absl::OkStatus();
  return pass.backend.ReluGradient(out_, out_gradient, *in_gradient);
}

absl::StatusOr<Tensor> ActivationLayer::Forward(ComputeBackend& backend,
                                                const ConstTensor& in,
                                                absl::Span<const ConstTensor>) {
  in_ = in;
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out, Out(backend, in.shape()));
  LOCKSTEP_RETURN_IF_ERROR(backend.Activate(kind_, in, out));
  return out;
}

absl::Status ActivationLayer::Backward(const BackwardPass& pass,
                                       const Tensor& out_gradient,
                                       const Tensor* in_gradient) {
  if (in_gradient == nullptr) return absl::OkStatus();
  return pass.backend.ActivateGradient(kind_, in_, out_gradient, *in_gradient);
}

void DropoutLayer::BeginPass(const PassContext& context) {
  // Scoring uses all elements.
  options_.rate = context.training ? rate_ : 0;
  // An odd factor spreads the keys, so that neighbouring passes with other
  // salts do not draw the same numbers.
  options_.key = context.key * 0x9e3779b97f4a7c15u + salt_;
}

absl::StatusOr<Tensor> DropoutLayer::Forward(ComputeBackend& backend,
                                             const ConstTensor& in,
                                             absl::Span<const ConstTensor>) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out, Out(backend, in.shape()));
  LOCKSTEP_RETURN_IF_ERROR(backend.Dropout(in, options_, out));
  return out;
}

absl::Status DropoutLayer::Backward(const BackwardPass& pass,
                                    const Tensor& out_gradient,
                                    const Tensor* in_gradient) {
  if (in_gradient == nullptr) return absl::OkStatus();
  // The same options draw the same elements again, so no mask has to be kept.
  return pass.backend.Dropout(out_gradient, options_, *in_gradient);
}

absl::StatusOr<Tensor> GlobalAveragePoolLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor>) {
  // One window over the whole image: it is cut off at the image's edges.
  window_ = std::max(in.dim(1), in.dim(2));
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out,
                            Out(backend, {in.dim(0), 1, 1, in.dim(3)}));
  LOCKSTEP_RETURN_IF_ERROR(backend.AveragePool(in, window_, out));
  return out.Reshaped({in.dim(0), in.dim(3)});
}

absl::Status GlobalAveragePoolLayer::Backward(const BackwardPass& pass,
                                              const Tensor& out_gradient,
                                              const Tensor* in_gradient) {
  if (in_gradient == nullptr) return absl::OkStatus();
  return pass.backend.AveragePoolGradient(
      out_gradient.Reshaped({in_gradient->dim(0), 1, 1, in_gradient->dim(3)}),
      window_, *in_gradient);
}

Shape AttentionLayer::Sequences(const ConstTensor& rows) const {
  return {rows.dim(0) / length_, length_, rows.dim(1)};
}

absl::StatusOr<Tensor> AttentionLayer::Forward(ComputeBackend& backend,
                                               const ConstTensor& in,
                                               absl::Span<const ConstTensor>) {
  in_ = in.Reshaped(Sequences(in));
  // Rows hold query, key and value side by side; the result has the width of
  // one.
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out,
                            Out(backend, {in.dim(0), in.dim(1) / 3}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      kept_, kept_memory_.Reserve(backend, type_,
                                  backend.KeptByAttention(in_, heads_)));
  const Tensor sequences = out.Reshaped(Sequences(out));
  LOCKSTEP_RETURN_IF_ERROR(
      backend.CausalAttention(in_, heads_, sequences, kept_));
  // Kept for Backward(). The next layer changes it no earlier than in its own
  // Backward(), which comes first but only writes gradients.
  out_ = sequences;
  return out;
}

absl::Status AttentionLayer::Backward(const BackwardPass& pass,
                                      const Tensor& out_gradient,
                                      const Tensor* in_gradient) {
  if (in_gradient == nullptr) return absl::OkStatus();
  return pass.backend.CausalAttentionGradient(
      in_, heads_, out_, kept_, out_gradient.Reshaped(Sequences(out_gradient)),
      in_gradient->Reshaped(in_.shape()));
}

ConvolutionLayer::ConvolutionLayer(const Options& options, ElementType type)
    : Layer(type, {{absl::StrCat(options.name, "/filters"),
                    {options.kernel_size, options.kernel_size, options.channels,
                     options.filters},
                    VariableType(type),
                    {Initializer::Kind::kHeNormal}}}),
      options_{.stride = options.stride} {}

absl::StatusOr<Tensor> ConvolutionLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  in_ = in;
  const int64_t stride = options_.stride;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor out,
      Out(backend, {in.dim(0), (in.dim(1) + stride - 1) / stride,
                    (in.dim(2) + stride - 1) / stride, variables[0].dim(3)}));
  LOCKSTEP_RETURN_IF_ERROR(backend.Conv2D(in, variables[0], out, options_));
  return out;
}

absl::Status ConvolutionLayer::Backward(const BackwardPass& pass,
                                        const Tensor& out_gradient,
                                        const Tensor* in_gradient) {
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.Conv2DFilterGradient(
      in_, out_gradient, pass.gradients[0], options_));
  if (in_gradient != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(pass.backend.Conv2DInputGradient(
        pass.variables[0], out_gradient, *in_gradient, options_));
  }
  pass.on_gradient(0);
  return absl::OkStatus();
}

}  // namespace lockstep::worker
