#include "worker/models/layers/conv_layer.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kFilters = 0;
constexpr size_t kBias = 1;

}  // namespace

ConvLayer::ConvLayer(const Options& options, ElementType type)
    : Layer(type, {{absl::StrCat(options.name, "/filters"),
                    {options.kernel_size, options.kernel_size, options.channels,
                     options.filters},
                    VariableType(type),
                    Initializer{.kind = Initializer::Kind::kHeNormal}},
                   {absl::StrCat(options.name, "/bias"),
                    {options.filters},
                    VariableType(type),
                    Initializer{}}}) {}

absl::Status ConvLayer::Reserve(ComputeBackend& backend,
                                const ConstTensor& in) {
  const int64_t filters = variables()[kBias].shape[0];
  const Shape full = {in.dim(0), in.dim(1), in.dim(2), filters};
  // Rounded up, as MaxPool2x2() does: a last odd row or column is a window of
  // its own.
  const Shape half = {in.dim(0), (in.dim(1) + 1) / 2, (in.dim(2) + 1) / 2,
                      filters};
  LOCKSTEP_ASSIGN_OR_RETURN(activation_,
                            activation_memory_.Reserve(backend, type_, full));
  LOCKSTEP_ASSIGN_OR_RETURN(
      argmax_, argmax_memory_.Reserve(backend, ElementType::kUint8, half));
  LOCKSTEP_ASSIGN_OR_RETURN(out_, Out(backend, half));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ConvLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  LOCKSTEP_RETURN_IF_ERROR(Reserve(backend, in));
  in_ = in;
  LOCKSTEP_RETURN_IF_ERROR(
      backend.Conv2D(in, variables[kFilters], activation_));
  LOCKSTEP_RETURN_IF_ERROR(backend.AddBias(variables[kBias], activation_));
  // In place: only the result is needed again, see Backward().
  LOCKSTEP_RETURN_IF_ERROR(backend.Relu(activation_, activation_));
  LOCKSTEP_RETURN_IF_ERROR(backend.MaxPool2x2(activation_, out_, argmax_));
  return out_;
}

absl::Status ConvLayer::Backward(const BackwardPass& pass,
                                 const Tensor& out_gradient,
                                 const Tensor* in_gradient) {
  ComputeBackend& backend = pass.backend;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor gradient,
      activation_gradient_memory_.Reserve(backend, type_, activation_.shape()));
  LOCKSTEP_RETURN_IF_ERROR(
      backend.MaxPool2x2Gradient(argmax_, out_gradient, gradient));
  // In place; `activation_` is the result of the ReLU, which is all that its
  // gradient needs.
  LOCKSTEP_RETURN_IF_ERROR(
      backend.ReluGradient(activation_, gradient, gradient));
  LOCKSTEP_RETURN_IF_ERROR(
      backend.BiasGradient(gradient, pass.gradients[kBias]));
  pass.on_gradient(kBias);
  LOCKSTEP_RETURN_IF_ERROR(
      backend.Conv2DFilterGradient(in_, gradient, pass.gradients[kFilters]));
  if (in_gradient != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(backend.Conv2DInputGradient(
        pass.variables[kFilters], gradient, *in_gradient));
  }
  // Only now: the input's gradient reads the filters, whose value may be
  // overwritten after this call.
  pass.on_gradient(kFilters);
  return absl::OkStatus();
}

}  // namespace lockstep::worker
