#ifndef LOCKSTEP_TESTS_GOLDEN_VARIABLE_STATE_H_
#define LOCKSTEP_TESTS_GOLDEN_VARIABLE_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "server/update/adam_powers.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

// A variable with the slots that an optimizer keeps for it.
struct VariableState {
  Tensor value;
  std::vector<std::vector<std::byte>> slots;  // in order of Slots()
};

// What updates of one step have in common.
struct StepSettings {
  OptimizerConfig config;
  DType dtype = DType::kFloat32;
  double learning_rate = 0;
  AdamPowers powers;
};

// Slots as they start.
VariableState MakeState(const StepSettings& settings, Tensor value);

// The product's update of one variable, in place.
//
//   kInvalidArgument  a gradient that is not one of this variable
absl::Status ApplyDense(const StepSettings& settings, const Tensor& gradient,
                        VariableState& state);
absl::Status ApplySparse(const StepSettings& settings,
                         absl::Span<const int64_t> indices,
                         const Tensor& values, bool decayed,
                         VariableState& state);
absl::Status Decay(const StepSettings& settings, VariableState& state);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_VARIABLE_STATE_H_
