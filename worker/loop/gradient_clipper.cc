#include "worker/loop/gradient_clipper.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "worker/loop/gradient_clipping.h"

namespace lockstep::worker {

void GradientClipper::Ready(size_t variable, Send send) {
  switch (config_.kind) {
    case ClippingConfig::Kind::kGlobalNorm:
      // The norm is over all gradients, so that the first one can leave no
      // sooner than the last one is there.
      kept_.push_back({variable, /*absent=*/false});
      return;
    case ClippingConfig::Kind::kNorm:
      ClipByNorm(dtype_, config_.limit, gradients_()[variable]);
      break;
    case ClippingConfig::Kind::kValue:
      ClipByValue(dtype_, config_.limit, gradients_()[variable]);
      break;
    case ClippingConfig::Kind::kMeanGlobalNorm:  // the servers' work
    case ClippingConfig::Kind::kNone:
      break;
  }
  send(variable, /*absent=*/false);
}

void GradientClipper::Absent(size_t variable, Send send) {
  if (config_.kind == ClippingConfig::Kind::kGlobalNorm) {
    // Its zeros add nothing to the norm, but must not overtake the others.
    kept_.push_back({variable, /*absent=*/true});
  } else {
    send(variable, /*absent=*/true);
  }
}

void GradientClipper::EndPass(Send send) {
  if (config_.kind != ClippingConfig::Kind::kGlobalNorm) return;
  // The zeros of absent variables add nothing to the norm.
  const Gradients gradients = gradients_();
  const std::vector<absl::Span<const std::byte>> values(gradients.begin(),
                                                        gradients.end());
  ClipByGlobalNorm(dtype_, config_.limit, GlobalNorm(dtype_, values),
                   gradients);
  for (const Kept& kept : kept_) send(kept.variable, kept.absent);
  kept_.clear();
}

absl::StatusOr<DType> ClippedType(const ClippingConfig& clipping,
                                  const std::vector<VariableSpec>& variables) {
  const VariableSpec* first = nullptr;
  for (const VariableSpec& variable : variables) {
    // Buffers are pushed without clipping, so their type does not matter.
    if (variable.buffer) continue;
    if (first == nullptr) first = &variable;
    if (variable.dtype == first->dtype ||
        clipping.kind == ClippingConfig::Kind::kNone ||
        clipping.limits_mean()) {  // which servers do
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the job has clipping, but \"", first->name, "\" is of ",
        std::string(DTypeName(first->dtype)), " and \"", variable.name,
        "\" of ", std::string(DTypeName(variable.dtype)),
        "; give all variables one type, or leave out clipping"));
  }
  return first == nullptr ? DType::kFloat32 : first->dtype;
}

}  // namespace lockstep::worker
