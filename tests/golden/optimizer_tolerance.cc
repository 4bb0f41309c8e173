#include "tests/golden/optimizer_tolerance.h"

namespace lockstep::golden {
namespace {

using Kind = OptimizerConfig::Kind;

Distance ReciprocalRootDistance(Kind kind, DType dtype) {
  const bool single = dtype == DType::kFloat32;
  if (dtype == DType::kFloat64) return {};
  if (kind == Kind::kAdagrad || kind == Kind::kProximalAdagrad)
    return {single ? 4.0 : 2.0, 0};
  if (kind == Kind::kRmsProp) return {single ? 4.0 : 2.0, single ? 4.0 : 2.0};
  return {single ? 4.0 : 3.0, 6};
}

Distance FtrlDistance(double power, DType dtype) {
  const bool plain = power == -0.5 || power == 0 || power == -1;
  if (plain || dtype == DType::kFloat16) return {};
  if (dtype == DType::kFloat32) return {4, 3};
  return {2, 2};
}

}  // namespace

Distance MeasuredDistance(const OptimizerConfig& config, DType dtype,
                          GradientForm form) {
  if (form == GradientForm::kColumn) return {};
  switch (config.kind) {
    case Kind::kAdagrad:
    case Kind::kProximalAdagrad:
    case Kind::kAdadelta:
      return ReciprocalRootDistance(config.kind, dtype);
    case Kind::kRmsProp:
      if (form == GradientForm::kDense) return {};
      return ReciprocalRootDistance(config.kind, dtype);
    case Kind::kFtrl:
      return FtrlDistance(config.learning_rate_power, dtype);
    default:
      return {};
  }
}

}  // namespace lockstep::golden
