#include "worker/models/layers/layer_stack.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// For callers that need no notice before a layer.
absl::Status CallNothing(size_t /*first*/, size_t /*count*/) {
  return absl::OkStatus();
}

}  // namespace

LayerStack::LayerStack(Layers layers, ElementType type)
    : Layer(type, VariablesOf(layers)), random_(AnyRandom(layers)) {
  size_t first_variable = 0;
  for (std::unique_ptr<Layer>& layer : layers) {
    Step& step = steps_.emplace_back();
    step.first_variable = first_variable;
    first_variable += layer->variables().size();
    step.layer = std::move(layer);
  }
}

void LayerStack::BeginPass(const PassContext& context) {
  for (Step& step : steps_) step.layer->BeginPass(context);
}

absl::StatusOr<Tensor> LayerStack::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  return Forward(backend, in, variables, CallNothing);
}

absl::Status LayerStack::Backward(const BackwardPass& pass,
                                  const Tensor& out_gradient,
                                  const Tensor* in_gradient) {
  return Backward(pass, out_gradient, in_gradient, CallNothing);
}

absl::StatusOr<Tensor> LayerStack::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables, BeforeLayer before) {
  ConstTensor next = in;
  Tensor out;
  for (Step& step : steps_) {
    LOCKSTEP_RETURN_IF_ERROR(before(step.first_variable, step.count()));
    // Backward() reserves the gradient of this input.
    step.in_shape = next.shape();
    LOCKSTEP_ASSIGN_OR_RETURN(
        out, step.layer->Forward(
                 backend, next,
                 variables.subspan(step.first_variable, step.count())));
    next = out;
  }
  return out;
}

absl::Status LayerStack::Backward(const BackwardPass& pass,
                                  const Tensor& out_gradient,
                                  const Tensor* in_gradient,
                                  BeforeLayer before) {
  Tensor gradient = out_gradient;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    const size_t first = step.first_variable;
    LOCKSTEP_RETURN_IF_ERROR(before(first, step.count()));
    Tensor below;
    if (i > 0) {
      // Two buffers in turn: a layer reads the gradient of its output from one
      // and writes that of its input to the other.
      LOCKSTEP_ASSIGN_OR_RETURN(
          below, between_[i % 2].Reserve(pass.backend, type_, step.in_shape));
    }
    const auto report = [&](size_t variable) {
      pass.on_gradient(first + variable);
    };
    LOCKSTEP_RETURN_IF_ERROR(step.layer->Backward(
        {pass.backend, pass.variables.subspan(first, step.count()),
         pass.gradients.subspan(first, step.count()), report},
        gradient, i > 0 ? &below : in_gradient));
    gradient = below;
  }
  return absl::OkStatus();
}

namespace {

std::vector<VariableSpec> Joined(const Layers& first, const Layers& second) {
  std::vector<VariableSpec> variables = VariablesOf(first);
  for (VariableSpec& variable : VariablesOf(second)) {
    variables.push_back(std::move(variable));
  }
  return variables;
}

}  // namespace

ResidualLayer::ResidualLayer(Layers branch, Layers shortcut, ElementType type)
    : Layer(type, Joined(branch, shortcut)),
      branch_(std::move(branch), type),
      shortcut_(std::move(shortcut), type) {}

void ResidualLayer::BeginPass(const PassContext& context) {
  branch_.BeginPass(context);
  shortcut_.BeginPass(context);
}

absl::StatusOr<Tensor> ResidualLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  const size_t count = branch_.variables().size();
  in_shape_ = in.shape();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor out,
      branch_.Forward(backend, in, variables.subspan(0, count)));
  ConstTensor beside = in;
  if (!shortcut_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        beside, shortcut_.Forward(backend, in, variables.subspan(count)));
  }
  // In place: the branch's own output is not needed any more (see the header).
  LOCKSTEP_RETURN_IF_ERROR(backend.Combine(beside, 1, 1, out));
  return out;
}

absl::Status ResidualLayer::Backward(const BackwardPass& pass,
                                     const Tensor& out_gradient,
                                     const Tensor* in_gradient) {
  ComputeBackend& backend = pass.backend;
  const size_t count = branch_.variables().size();
  // The branch overwrites its gradient, so the shortcut's is copied first.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor copy,
      out_gradient_copy_.Reserve(backend, type_, out_gradient.shape()));
  LOCKSTEP_RETURN_IF_ERROR(backend.Combine(out_gradient, 1, 0, copy));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor through_branch,
      branch_gradient_.Reserve(backend, type_, in_shape_));
  if (!shortcut_.empty()) {
    const auto report = [&](size_t variable) {
      pass.on_gradient(count + variable);
    };
    LOCKSTEP_RETURN_IF_ERROR(
        shortcut_.Backward({backend, pass.variables.subspan(count),
                            pass.gradients.subspan(count), report},
                           copy, in_gradient));
  } else if (in_gradient != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(backend.Combine(copy, 1, 0, *in_gradient));
  }
  // The input's gradient is the sum of both ways: the shortcut has written its
  // part, the branch's is added below.
  LOCKSTEP_RETURN_IF_ERROR(branch_.Backward(
      {backend, pass.variables.subspan(0, count),
       pass.gradients.subspan(0, count), pass.on_gradient},
      out_gradient, in_gradient == nullptr ? nullptr : &through_branch));
  if (in_gradient == nullptr) return absl::OkStatus();
  return backend.Combine(through_branch, 1, 1, *in_gradient);
}

}  // namespace lockstep::worker
