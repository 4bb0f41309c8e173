#include "worker/models/layers/norm_layers.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// PyTorch's default for both norms.
constexpr double kEpsilon = 1e-5;
// PyTorch's, as the share of a step's own statistics.
constexpr double kMomentum = 0.1;
constexpr size_t kScale = 0;
constexpr size_t kShift = 1;
constexpr size_t kMovingMean = 2;
constexpr size_t kMovingVariance = 3;

VariableSpec Vector(const std::string& name, const char* what, int64_t size,
                    ElementType type, double value) {
  return {absl::StrCat(name, "/", what),
          {size},
          VariableType(type),
          {Initializer::Kind::kConstant, value}};
}

// A buffer: no optimizer, decay or limit of gradients applies to it.
VariableSpec Moving(const std::string& name, const char* what, int64_t size,
                    ElementType type, double value) {
  VariableSpec spec = Vector(name, what, size, type, value);
  spec.buffer = true;
  return spec;
}

}  // namespace

LayerNormLayer::LayerNormLayer(const std::string& name, int64_t width,
                               ElementType type)
    : Layer(type, {Vector(name, "scale", width, type, 1),
                   Vector(name, "shift", width, type, 0)}) {}

absl::StatusOr<Tensor> LayerNormLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  in_ = in;
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out, Out(backend, in.shape()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      statistics_, statistics_memory_.Reserve(backend, type_, {in.dim(0), 2}));
  LOCKSTEP_RETURN_IF_ERROR(backend.LayerNorm(
      in, variables[kScale], variables[kShift], kEpsilon, out, statistics_));
  return out;
}

absl::Status LayerNormLayer::Backward(const BackwardPass& pass,
                                      const Tensor& out_gradient,
                                      const Tensor* in_gradient) {
  Tensor in;
  if (in_gradient != nullptr) {
    in = *in_gradient;
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(
        in, in_gradient_memory_.Reserve(pass.backend, type_, in_.shape()));
  }
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.LayerNormGradient(
      in_, pass.variables[kScale], statistics_, out_gradient, in,
      pass.gradients[kScale], pass.gradients[kShift]));
  pass.on_gradient(kShift);
  pass.on_gradient(kScale);
  return absl::OkStatus();
}

BatchNormLayer::BatchNormLayer(const std::string& name, int64_t channels,
                               ElementType type)
    : Layer(type, {Vector(name, "scale", channels, type, 1),
                   Vector(name, "shift", channels, type, 0),
                   Moving(name, "moving_mean", channels, type, 0),
                   Moving(name, "moving_variance", channels, type, 1)}) {}

Tensor BatchNormLayer::Statistic(int64_t row) const {
  // Row 0 holds the means, row 1 the variances.
  const size_t bytes = statistics_.bytes() / 2;
  return Tensor(type_, {statistics_.dim(1)},
                static_cast<char*>(statistics_.raw()) + row * bytes);
}

absl::Status BatchNormLayer::CopyMoving(
    ComputeBackend& backend, absl::Span<const ConstTensor> variables) {
  LOCKSTEP_RETURN_IF_ERROR(
      backend.Combine(variables[kMovingMean], 1, 0, Statistic(0)));
  return backend.Combine(variables[kMovingVariance], 1, 0, Statistic(1));
}

absl::StatusOr<Tensor> BatchNormLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  const int64_t channels = variables[kScale].dim(0);
  // Each pixel of each picture is one sample of its channel.
  in_ = in.Reshaped({in.size() / channels, channels});
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out, Out(backend, in.shape()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      statistics_, statistics_memory_.Reserve(backend, type_, {2, channels}));
  LOCKSTEP_RETURN_IF_ERROR(training_ ? backend.BatchStatistics(in_, statistics_)
                                     : CopyMoving(backend, variables));
  LOCKSTEP_RETURN_IF_ERROR(
      backend.BatchNorm(in_, statistics_, variables[kScale], variables[kShift],
                        kEpsilon, out.Reshaped(in_.shape())));
  return out;
}

// An empty batch has no statistics; its gradient is then zero.
absl::Status BatchNormLayer::MovingGradient(const BackwardPass& pass,
                                            size_t variable, int64_t row) {
  // Servers subtract the mean of what workers push for a buffer.
  const double share = in_.dim(0) > 0 ? kMomentum : 0;
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.Combine(pass.variables[variable], share,
                                                0, pass.gradients[variable]));
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.Combine(Statistic(row), -share, 1,
                                                pass.gradients[variable]));
  pass.on_gradient(variable);
  return absl::OkStatus();
}

absl::Status BatchNormLayer::Backward(const BackwardPass& pass,
                                      const Tensor& out_gradient,
                                      const Tensor* in_gradient) {
  // These need no gradient from above, so they can be sent before the layer's
  // own.
  LOCKSTEP_RETURN_IF_ERROR(MovingGradient(pass, kMovingVariance, 1));
  LOCKSTEP_RETURN_IF_ERROR(MovingGradient(pass, kMovingMean, 0));
  Tensor in;
  if (in_gradient != nullptr) {
    in = *in_gradient;
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(
        in, in_gradient_memory_.Reserve(pass.backend, type_, in_.shape()));
  }
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.BatchNormGradient(
      in_, statistics_, pass.variables[kScale], kEpsilon,
      out_gradient.Reshaped(in_.shape()), in.Reshaped(in_.shape()),
      pass.gradients[kScale], pass.gradients[kShift]));
  pass.on_gradient(kShift);
  pass.on_gradient(kScale);
  return absl::OkStatus();
}

}  // namespace lockstep::worker
