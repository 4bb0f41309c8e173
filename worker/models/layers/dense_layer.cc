#include "worker/models/layers/dense_layer.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kWeights = 0;
constexpr size_t kBias = 1;

Initializer WeightsOf(const DenseLayer::Options& options) {
  // He's initializer makes up for the half of the variance that a ReLU removes.
  return options.weights.value_or(
      Initializer{.kind = options.relu ? Initializer::Kind::kHeNormal
                                       : Initializer::Kind::kGlorotUniform});
}

}  // namespace

DenseLayer::DenseLayer(const Options& options, ElementType type)
    : Layer(type, {{absl::StrCat(options.name, "/weights"),
                    {options.inputs, options.units},
                    VariableType(type),
                    WeightsOf(options)},
                   {absl::StrCat(options.name, "/bias"),
                    {options.units},
                    VariableType(type),
                    Initializer{}}}),
      relu_(options.relu) {}

absl::StatusOr<Tensor> DenseLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  const ConstTensor& weights = variables[kWeights];
  // Pictures [n,h,w,c] become rows; no element moves.
  in_ = in.Reshaped({in.dim(0), weights.dim(0)});
  LOCKSTEP_ASSIGN_OR_RETURN(out_, Out(backend, {in_.dim(0), weights.dim(1)}));
  LOCKSTEP_RETURN_IF_ERROR(backend.MatMul(in_, weights, {}, out_));
  LOCKSTEP_RETURN_IF_ERROR(backend.AddBias(variables[kBias], out_));
  if (relu_) LOCKSTEP_RETURN_IF_ERROR(backend.Relu(out_, out_));
  return out_;
}

absl::Status DenseLayer::Backward(const BackwardPass& pass,
                                  const Tensor& out_gradient,
                                  const Tensor* in_gradient) {
  ComputeBackend& backend = pass.backend;
  if (relu_) {
    // In place: a layer may overwrite the gradient of its output, see Layer.
    LOCKSTEP_RETURN_IF_ERROR(
        backend.ReluGradient(out_, out_gradient, out_gradient));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      backend.BiasGradient(out_gradient, pass.gradients[kBias]));
  pass.on_gradient(kBias);
  LOCKSTEP_RETURN_IF_ERROR(backend.MatMul(
      in_, out_gradient, {.transpose_a = true}, pass.gradients[kWeights]));
  if (in_gradient != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(backend.MatMul(
        out_gradient, pass.variables[kWeights], {.transpose_b = true},
        in_gradient->Reshaped(in_.shape())));
  }
  // Only now: the input's gradient reads the weights, whose value may be
  // overwritten after this call.
  pass.on_gradient(kWeights);
  return absl::OkStatus();
}

void AppendDense(int64_t inputs, absl::Span<const int64_t> hidden_units,
                 int64_t outputs, ElementType type,
                 std::vector<std::unique_ptr<Layer>>& layers) {
  for (size_t i = 0; i < hidden_units.size(); ++i) {
    layers.push_back(std::make_unique<DenseLayer>(
        DenseLayer::Options{.name = absl::StrCat("hidden", i + 1),
                            .inputs = inputs,
                            .units = hidden_units[i],
                            .relu = true},
        type));
    inputs = hidden_units[i];
  }
  layers.push_back(std::make_unique<DenseLayer>(
      DenseLayer::Options{.name = "logits", .inputs = inputs, .units = outputs},
      type));
}

}  // namespace lockstep::worker
