#include "worker/loop/clipped_gradient_source.h"

#include "common/base/status_macros.h"
#include "worker/loop/gradient_clipping.h"

namespace lockstep {

absl::StatusOr<GradientResult> ClippedGradientSource::Compute(
    int64_t index, const PassHooks& hooks) {
  if (config_.kind == ClippingConfig::Kind::kGlobalNorm) {
    return ComputeTogether(index, hooks);
  }
  PassHooks clipping = hooks;
  clipping.on_gradient = [this, &hooks](size_t variable) {
    Clip(variable);
    hooks.Report(variable);
  };
  return source_.Compute(index, clipping);
}

absl::StatusOr<GradientResult> ClippedGradientSource::ComputeTogether(
    int64_t index, const PassHooks& hooks) {
  std::vector<size_t> order;
  PassHooks collecting = hooks;
  collecting.on_gradient = [&order](size_t variable) {
    order.push_back(variable);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(GradientResult result,
                            source_.Compute(index, collecting));
  const Gradients gradients = gradients_();
  const std::vector<absl::Span<const std::byte>> values(gradients.begin(),
                                                        gradients.end());
  ClipByGlobalNorm(dtype_, config_.limit, GlobalNorm(dtype_, values),
                   gradients);
  for (const size_t variable : order) hooks.Report(variable);
  return result;
}

void ClippedGradientSource::Clip(size_t variable) const {
  switch (config_.kind) {
    case ClippingConfig::Kind::kNorm:
      return ClipByNorm(dtype_, config_.limit, gradients_()[variable]);
    case ClippingConfig::Kind::kValue:
      return ClipByValue(dtype_, config_.limit, gradients_()[variable]);
    case ClippingConfig::Kind::kNone:
    case ClippingConfig::Kind::kGlobalNorm:
      return;
  }
}

}  // namespace lockstep
