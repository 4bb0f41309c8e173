#include "server/update/slots.h"

#include <cstring>

#include "common/job/variable_settings.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/denormals.h"
#include "common/numeric/float16.h"
#include "server/update/update_kernels.h"

namespace lockstep::server {
namespace {

template <typename T>
void FillWith(T value, absl::Span<std::byte> elements) {
  for (size_t i = 0; i + sizeof(T) <= elements.size(); i += sizeof(T)) {
    std::memcpy(elements.data() + i, &value, sizeof(T));
  }
}

std::vector<SlotSpec> RmsPropSlots(const OptimizerConfig& config) {
  std::vector<SlotSpec> slots = {{"rms", "RMSProp", 1}};
  if (config.centered) slots.push_back({"mg", "RMSProp_1", 0});
  slots.push_back({"momentum", config.centered ? "RMSProp_2" : "RMSProp_1", 0});
  return slots;
}

}  // namespace

bool CountsUpdates(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kAdamTorch:
    case OptimizerConfig::Kind::kAdamW:
      return true;
    case OptimizerConfig::Kind::kSgd:
      // Only the first update differs: it has no dampening.
      return config.momentum > 0 && config.dampening > 0;
    default:
      return false;
  }
}

std::vector<SlotSpec> Slots(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kGradientDescent:
      return {};
    case OptimizerConfig::Kind::kMomentum:
      return {{"momentum", "Momentum", 0}};
    case OptimizerConfig::Kind::kAdam:
      return {{"m", "Adam", 0}, {"v", "Adam_1", 0}};
    case OptimizerConfig::Kind::kLazyAdam:
      return {{"m", "LazyAdam", 0}, {"v", "LazyAdam_1", 0}};
    case OptimizerConfig::Kind::kProximalGradientDescent:
      return {};
    case OptimizerConfig::Kind::kAdagradDa:
      return {{"gradient_accumulator", "AdagradDA", 0},
              {"gradient_squared_accumulator", "AdagradDA_1",
               config.initial_accumulator_value}};
    case OptimizerConfig::Kind::kProximalAdagrad:
      return {
          {"accumulator", "ProximalAdagrad", config.initial_accumulator_value}};
    case OptimizerConfig::Kind::kAdagrad:
      return {{"accumulator", "Adagrad", config.initial_accumulator_value}};
    case OptimizerConfig::Kind::kRmsProp:
      return RmsPropSlots(config);
    case OptimizerConfig::Kind::kAdadelta:
      return {{"accum", "Adadelta", 0}, {"accum_update", "Adadelta_1", 0}};
    case OptimizerConfig::Kind::kFtrl:
      return {{"accum", "Ftrl", config.initial_accumulator_value},
              {"linear", "Ftrl_1", 0}};
    case OptimizerConfig::Kind::kSgd:
      if (config.momentum == 0) return {};
      return {{"momentum_buffer", "momentum_buffer", 0}};
    case OptimizerConfig::Kind::kAdamTorch:
    case OptimizerConfig::Kind::kAdamW:
      return {{"exp_avg", "exp_avg", 0}, {"exp_avg_sq", "exp_avg_sq", 0}};
  }
  return {};
}

SlotSpec MovingAverageSlot() {
  // As TensorFlow's shadow variables, which start at the variable's value.
  return {"average", kMovingAverageName, 0, true};
}

size_t NumSlots(const OptimizerConfig& config) { return Slots(config).size(); }

std::vector<std::string> SlotNames(const OptimizerConfig& config) {
  std::vector<std::string> names;
  for (const SlotSpec& slot : Slots(config)) names.push_back(slot.name);
  return names;
}

bool HasAdamPowers(const OptimizerConfig& config) {
  return config.kind == OptimizerConfig::Kind::kAdam ||
         config.kind == OptimizerConfig::Kind::kLazyAdam;
}

AdamPowers InitialAdamPowers(const OptimizerConfig& config) {
  if (!HasAdamPowers(config)) return {};
  return {static_cast<float>(config.beta1), static_cast<float>(config.beta2)};
}

AdamPowers NextAdamPowers(const OptimizerConfig& config, AdamPowers powers) {
  if (!HasAdamPowers(config)) return {};
  const AdamPowers first = InitialAdamPowers(config);
  ScopedFlushDenormals flush;
  // Product() is in another file, so the compiler cannot move it out of the
  // scope of `flush`.
  return {Product(powers.beta1_power, first.beta1_power),
          Product(powers.beta2_power, first.beta2_power)};
}

void FillElements(DType dtype, double value, absl::Span<std::byte> elements) {
  switch (dtype) {
    case DType::kFloat16:
      return FillWith(ToFloat16(value), elements);
    case DType::kFloat32:
      return FillWith(static_cast<float>(value), elements);
    case DType::kFloat64:
      return FillWith(value, elements);
    case DType::kBFloat16:
      return FillWith(ToBFloat16(value), elements);
  }
}

}  // namespace lockstep::server
