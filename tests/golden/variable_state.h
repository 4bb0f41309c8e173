#ifndef LOCKSTEP_TESTS_GOLDEN_VARIABLE_STATE_H_
#define LOCKSTEP_TESTS_GOLDEN_VARIABLE_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "server/update/slots.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

// A variable with the slots of its optimizer.
struct VariableState {
  Tensor value;
  std::vector<std::vector<std::byte>> slots;  // in order of Slots()
};

// The common settings of the updates of one step.
struct StepSettings {
  OptimizerConfig config;
  DType dtype = DType::kFloat32;
  double learning_rate = 0;
  server::AdamPowers powers;
  int64_t step = 0;  // before the update
};

// Returns the variable with its initial slots.
VariableState MakeState(const StepSettings& settings, Tensor value);

// Applies the product's update to one variable, in place.
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
