#include "server/update/slots.h"

#include <cstring>

#include "common/job/variable_settings.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"

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
    case OptimizerConfig::Kind::kAdagrad:
      return {{"accumulator", "Adagrad", config.initial_accumulator_value}};
    case OptimizerConfig::Kind::kRmsProp:
      return RmsPropSlots(config);
    case OptimizerConfig::Kind::kAdadelta:
      return {{"accum", "Adadelta", 0}, {"accum_update", "Adadelta_1", 0}};
    case OptimizerConfig::Kind::kFtrl:
      return {{"accum", "Ftrl", config.initial_accumulator_value},
              {"linear", "Ftrl_1", 0}};
  }
  return {};
}

SlotSpec MovingAverageSlot() {
  return {"average", kMovingAverageName, 0, true};
}

size_t NumSlots(const OptimizerConfig& config) { return Slots(config).size(); }

std::vector<std::string> SlotNames(const OptimizerConfig& config) {
  std::vector<std::string> names;
  for (const SlotSpec& slot : Slots(config)) names.push_back(slot.name);
  return names;
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
      return FillWith(ToBFloat16(static_cast<float>(value)), elements);
  }
}

}  // namespace lockstep::server
