#include "server/optimizer/slots.h"

namespace lockstep {

size_t NumSlots(const OptimizerConfig& config) {
  return SlotNames(config).size();
}

std::vector<std::string> SlotNames(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kGradientDescent:
      return {};
    case OptimizerConfig::Kind::kMomentum:
      return {"Momentum"};
    case OptimizerConfig::Kind::kAdam:
      return {"Adam", "Adam_1"};
  }
  return {};
}

std::string SlotVariableName(std::string_view variable, std::string_view slot) {
  std::string name(variable);
  name += '/';
  name += slot;
  return name;
}

}  // namespace lockstep
