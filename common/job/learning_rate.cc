#include "common/job/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/numeric/float16.h"

namespace lockstep {
namespace {

// Returns the decay periods that have passed, with fraction.
double Periods(const LearningRateConfig& config, int64_t global_step) {
  if (config.decay_steps <= 0) return 0;
  return static_cast<double>(global_step) /
         static_cast<double>(config.decay_steps);
}

double Exponential(const LearningRateConfig& config, int64_t global_step) {
  double periods = Periods(config, global_step);
  if (config.staircase) periods = std::floor(periods);
  return config.base * std::pow(config.decay_rate, periods);
}

// The step of a boundary still has the value before it, as in TensorFlow's
// piecewise_constant_decay.
double Piecewise(const LearningRateConfig& config, int64_t global_step) {
  const auto above = std::lower_bound(config.boundaries.begin(),
                                      config.boundaries.end(), global_step);
  const size_t index = above - config.boundaries.begin();
  // A job that was not validated must not read past the end.
  return index < config.values.size() ? config.values[index] : config.base;
}

double Cosine(const LearningRateConfig& config, int64_t global_step) {
  const double periods = std::min(1.0, Periods(config, global_step));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * periods));
  // TensorFlow's CosineDecay.
  return config.base * ((1 - config.alpha) * cosine + config.alpha);
}

// Returns the share of the decay that is still to come, from 1 at the end of
// the warm-up to 0 at decay_steps.
double Remaining(const LearningRateConfig& config, int64_t global_step) {
  const int64_t steps = config.decay_steps - config.warmup_steps;
  if (steps <= 0 || global_step >= config.decay_steps) return 0;
  return std::min(1.0, static_cast<double>(config.decay_steps - global_step) /
                           static_cast<double>(steps));
}

double FromBaseToMinimum(const LearningRateConfig& config, double share) {
  return config.minimum + (config.base - config.minimum) * share;
}

// In the warm-up, both schedules return `base`; LearningRate() scales it.
double AlongALine(const LearningRateConfig& config, int64_t global_step) {
  if (global_step < config.warmup_steps) return config.base;
  return FromBaseToMinimum(config, Remaining(config, global_step));
}

// CosineAnnealingLR of PyTorch, in its closed form.
double AlongACosine(const LearningRateConfig& config, int64_t global_step) {
  if (global_step < config.warmup_steps) return config.base;
  const double passed = 1 - Remaining(config, global_step);
  return FromBaseToMinimum(config,
                           (1 + std::cos(std::numbers::pi * passed)) / 2);
}

double Scheduled(const LearningRateConfig& config, int64_t global_step) {
  switch (config.schedule) {
    case LearningRateConfig::Schedule::kConstant:
      return config.base;
    case LearningRateConfig::Schedule::kExponentialDecay:
      return Exponential(config, global_step);
    case LearningRateConfig::Schedule::kPiecewiseConstant:
      return Piecewise(config, global_step);
    case LearningRateConfig::Schedule::kCosineDecay:
      return Cosine(config, global_step);
    case LearningRateConfig::Schedule::kLinear:
      return AlongALine(config, global_step);
    case LearningRateConfig::Schedule::kCosine:
      return AlongACosine(config, global_step);
  }
  return config.base;
}

StepRate LowestRate(const LearningRateConfig& config, int64_t steps) {
  // All schedules but the piecewise one go one way: one end is the lowest.
  const int64_t last = std::max<int64_t>(steps, 1) - 1;
  StepRate lowest{last, LearningRate(config, last)};
  const auto compare = [&](int64_t step) {
    const double rate = LearningRate(config, step);
    if (rate < lowest.rate) lowest = {step, rate};
  };
  compare(0);
  if (config.schedule != LearningRateConfig::Schedule::kPiecewiseConstant) {
    return lowest;
  }
  for (const int64_t boundary : config.boundaries) {
    if (boundary < last) compare(boundary + 1);
  }
  return lowest;
}

bool IsAboveZero(double rate, DType type) {
  // Servers round rates to float32 first, also for wider variables.
  const auto single = static_cast<float>(rate);
  if (type == DType::kFloat16) return ToFloat(ToFloat16(single)) > 0;
  return single >= std::numeric_limits<float>::min();
}

}  // namespace

double LearningRate(const LearningRateConfig& config, int64_t global_step) {
  const double rate = Scheduled(config, global_step);
  if (global_step >= config.warmup_steps) return rate;
  return rate * (static_cast<double>(global_step) /
                 static_cast<double>(config.warmup_steps));
}

double LearningRateInEffect(const JobConfig& job, double scale,
                            int64_t global_step) {
  return scale * LearningRate(LearningRatesOf(job).front(), global_step);
}

std::optional<StepRate> ZeroRateOfFtrl(const OptimizerConfig& rule,
                                       const LearningRateConfig& config,
                                       int64_t steps, DType type,
                                       double scale) {
  if (rule.kind != OptimizerConfig::Kind::kFtrl) return std::nullopt;
  StepRate lowest = LowestRate(config, steps);
  lowest.rate *= scale;
  if (IsAboveZero(lowest.rate, type)) return std::nullopt;
  return lowest;
}

}  // namespace lockstep
