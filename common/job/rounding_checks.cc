#include "common/job/rounding_checks.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/numeric/float16.h"

namespace lockstep {
namespace {

using Kind = OptimizerConfig::Kind;

struct Number {
  absl::string_view field;
  double value;
};

// The shortest text that reads back as `value`: 0.99999999 must not be told as
// 1.
std::string Text(double value) {
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), static_cast<size_t>(end - text.data())};
}

// Numbers become float32 first, also for wider variables; see SharesOf() for
// exceptions.
double Rounded(double value, DType type) {
  const auto single = static_cast<float>(value);
  if (type == DType::kFloat16) return ToFloat(ToFloat16(single));
  // Subnormal numbers are flushed.
  return single < std::numeric_limits<float>::min() ? 0 : single;
}

// Where numbers are rounded, for messages.
std::string WhereRounded(DType type) {
  return type == DType::kFloat16 ? "variables are float16, which has no others"
                                 : "updates are computed, in float32";
}

absl::Status CheckHeld(const Number& number, DType type) {
  const double rounded = Rounded(number.value, type);
  if (rounded > 0 && std::isfinite(rounded)) return absl::OkStatus();
  return Wrong(number.field, Text(number.value),
               absl::StrCat(type == DType::kFloat16
                                ? "above 3e-8, as 1e-4 is, and below 65520"
                                : "at least 1.2e-38 and below 3.4e38",
                            ", where ", WhereRounded(type)));
}

absl::Status CheckShare(const Number& number, DType type) {
  if (Rounded(number.value, type) < 1) return absl::OkStatus();
  return Wrong(number.field, Text(number.value),
               absl::StrCat(type == DType::kFloat16 ? "at most 0.9997"
                                                    : "at most 0.9999999",
                            ": a larger one is 1 where ", WhereRounded(type)));
}

// The shares of its state that a rule keeps. Those of PyTorch's rules stay
// float64 where they are taken from 1.
std::vector<Number> SharesOf(const OptimizerConfig& rule) {
  switch (rule.kind) {
    case Kind::kMomentum:
      return {{"optimizer.momentum", rule.momentum}};
    case Kind::kAdam:
    case Kind::kLazyAdam:
      return {{"optimizer.beta1", rule.beta1}, {"optimizer.beta2", rule.beta2}};
    case Kind::kRmsProp:
      return {{"optimizer.decay", rule.decay},
              {"optimizer.momentum", rule.momentum}};
    case Kind::kAdadelta:
      return {{"optimizer.rho", rule.rho}};
    default:
      return {};
  }
}

// The numbers that keep a divisor from 0. PyTorch's rules take an epsilon in
// float32, but keep the mean of squares beside it in the variable's type, where
// small squares are 0.
std::vector<Number> DivisorsOf(const OptimizerConfig& rule) {
  switch (rule.kind) {
    case Kind::kAdam:
    case Kind::kLazyAdam:
    case Kind::kRmsProp:
    case Kind::kAdadelta:
    case Kind::kAdamTorch:
    case Kind::kAdamW:
      return {{"optimizer.epsilon", rule.epsilon}};
    case Kind::kAdagrad:
    case Kind::kAdagradDa:
    case Kind::kProximalAdagrad:
      return {{"optimizer.initial_accumulator_value",
               rule.initial_accumulator_value}};
    default:
      return {};
  }
}

absl::Status CheckRule(const OptimizerConfig& rule, DType type) {
  for (const Number& number : SharesOf(rule)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckShare(number, type));
  }
  for (const Number& number : DivisorsOf(rule)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckHeld(number, type));
  }
  return absl::OkStatus();
}

// Gradients of float64 are limited in float64. The reciprocal of a limit must
// be in range, too, for the global norm; one bound serves all kinds.
absl::Status CheckWideLimit(const Number& limit) {
  constexpr double kLowest = std::numeric_limits<double>::min();
  if (limit.value >= kLowest && 1 / limit.value >= kLowest) {
    return absl::OkStatus();
  }
  return Wrong(limit.field, Text(limit.value),
               "at least 2.3e-308 and at most 4.4e307, where gradients are "
               "float64");
}

}  // namespace

absl::Status CheckRates(const OptimizerConfig& rule,
                        const LearningRateConfig& rate, DType type) {
  // Ftrl's lowest rates are checked step by step, see ZeroRateOfFtrl().
  if (rule.kind == Kind::kFtrl) return absl::OkStatus();
  // PyTorch's rules compute float16 variables in float32.
  if (IsTorchOptimizer(rule.kind)) type = DType::kFloat32;
  if (rate.schedule != LearningRateConfig::Schedule::kPiecewiseConstant) {
    return CheckHeld({"learning_rate", rate.base}, type);
  }
  for (size_t i = 0; i < rate.values.size(); ++i) {
    const std::string field = Element("learning_rate_schedule.values", i);
    LOCKSTEP_RETURN_IF_ERROR(CheckHeld({field, rate.values[i]}, type));
  }
  return absl::OkStatus();
}

absl::Status CheckRounding(const OptimizerConfig& rule,
                           const LearningRateConfig& rate, DType type) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRule(rule, type));
  return CheckRates(rule, rate, type);
}

absl::Status CheckClippingLimit(const ClippingConfig& clipping, DType type) {
  using Clip = ClippingConfig::Kind;
  if (clipping.kind == Clip::kNone) return absl::OkStatus();
  const Number limit{"clipping.limit", clipping.limit};
  if (type == DType::kFloat64) return CheckWideLimit(limit);
  // Values are compared with their limit, and the mean is multiplied by its
  // quotient with a norm: an infinite one clips nothing, one of 0 leaves 0.
  const bool may_be_infinite =
      clipping.kind == Clip::kValue || clipping.kind == Clip::kMeanGlobalNorm;
  if (!may_be_infinite || Rounded(limit.value, type) == 0) {
    LOCKSTEP_RETURN_IF_ERROR(CheckHeld(limit, type));
  }
  // TensorFlow's global norm also takes the reciprocal.
  if (clipping.kind != Clip::kGlobalNorm ||
      Rounded(1 / limit.value, DType::kFloat32) > 0) {
    return absl::OkStatus();
  }
  return Wrong(limit.field, Text(limit.value),
               "at most 8e37: the reciprocal of a larger one is 0 in float32; "
               "leave clipping out to clip nothing");
}

absl::Status CheckRoundings(const JobConfig& job) {
  const std::vector<OptimizerConfig> rules = OptimizersOf(job);
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  const DType type = job.model.variable_type;
  LOCKSTEP_RETURN_IF_ERROR(CheckRounding(rules[0], rates[0], type));
  for (size_t i = 1; i < rules.size(); ++i) {
    const std::string element = Element("variable_optimizers", i - 1);
    const VariableOptimizer& other = job.variable_optimizers[i - 1];
    LOCKSTEP_RETURN_IF_ERROR(Within(element, CheckRule(rules[i], type)));
    const absl::Status held = CheckRates(rules[i], rates[i], type);
    // Without rates of its own it has the job's.
    const bool own = other.learning_rate.has_value() || other.schedule;
    LOCKSTEP_RETURN_IF_ERROR(own ? Within(element, held) : held);
  }
  // Averages move by a share of float32, whatever the type.
  LOCKSTEP_RETURN_IF_ERROR(CheckShare(
      {"moving_average.decay", job.moving_average.decay}, DType::kFloat32));
  if (job.model.kind == kExternalModel) return absl::OkStatus();
  return CheckClippingLimit(job.clipping, type);
}

}  // namespace lockstep
