#include "tests/golden/variable_state.h"

#include <utility>

#include "common/base/status_macros.h"
#include "server/update/optimizer.h"
#include "server/update/slots.h"
#include "server/update/sparse_optimizer.h"

namespace lockstep::golden {

VariableState MakeState(const StepSettings& settings, Tensor value) {
  VariableState state{std::move(value), {}};
  for (const server::SlotSpec& slot : server::Slots(settings.config)) {
    state.slots.emplace_back(state.value.values.size());
    server::FillElements(settings.dtype, slot.initial_value,
                         absl::MakeSpan(state.slots.back()));
  }
  return state;
}

absl::Status ApplyDense(const StepSettings& settings, const Tensor& gradient,
                        VariableState& state) {
  LOCKSTEP_RETURN_IF_ERROR(
      server::CheckCompatible(state.value.shape, gradient.shape));
  if (gradient.values.empty()) return absl::OkStatus();
  const server::ByteSlice slice{gradient.values.data(), gradient.values.size()};
  const server::GradientSlices slices{{&slice, 1}};
  server::ApplyInput input;
  input.dtype = settings.dtype;
  input.learning_rate = settings.learning_rate;
  input.powers = settings.powers;
  input.step = settings.step;
  input.gradients = {&slices, 1};
  input.old_value = state.value.values;
  input.new_value = absl::MakeSpan(state.value.values);
  for (size_t i = 0; i < state.slots.size(); ++i) {
    input.old_slots[i] = state.slots[i];
    input.new_slots[i] = absl::MakeSpan(state.slots[i]);
  }
  return server::Optimizer(settings.config).Apply(input);
}

absl::Status ApplySparse(const StepSettings& settings,
                         absl::Span<const int64_t> indices,
                         const Tensor& values, bool decayed,
                         VariableState& state) {
  server::SparseApplyInput input;
  input.dtype = settings.dtype;
  input.learning_rate = settings.learning_rate;
  input.powers = settings.powers;
  input.step = settings.step;
  input.decayed = decayed;
  input.indices = indices;
  input.values_shape = values.shape;
  input.values = values.values;
  input.shape = state.value.shape;
  input.value = absl::MakeSpan(state.value.values);
  for (size_t i = 0; i < state.slots.size(); ++i) {
    input.slots[i] = absl::MakeSpan(state.slots[i]);
  }
  return server::SparseOptimizer(settings.config).Apply(input);
}

absl::Status Decay(const StepSettings& settings, VariableState& state) {
  std::vector<absl::Span<std::byte>> slots;
  for (auto& slot : state.slots) slots.push_back(absl::MakeSpan(slot));
  return server::SparseOptimizer(settings.config).Decay(settings.dtype, slots);
}

}  // namespace lockstep::golden
