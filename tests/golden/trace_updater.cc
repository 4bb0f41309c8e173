#include "tests/golden/trace_updater.h"

#include <utility>

#include "common/base/status_macros.h"
#include "server/update/moving_average.h"

namespace lockstep::golden {

TraceUpdater::TraceUpdater(StepSettings settings,
                           std::optional<double> average_decay,
                           std::vector<Variable> variables,
                           std::vector<int> part_variables)
    : settings_(std::move(settings)),
      average_decay_(average_decay),
      variables_(std::move(variables)),
      part_variables_(std::move(part_variables)) {}

size_t TraceUpdater::part_size(int part) const {
  return variables_[part_variables_[part]].state.value.values.size();
}

absl::StatusOr<size_t> TraceUpdater::GradientSize(int part,
                                                  GradientType) const {
  return part_size(part);
}

absl::StatusOr<bool> TraceUpdater::Update(
    int part, int64_t step, absl::Span<const server::PartGradient> gradients) {
  VariableState& state = StateOf(part);
  Tensor gradient{state.value.shape, {}};
  for (const server::ByteSlice& slice : gradients[0].slices) {
    gradient.values.insert(gradient.values.end(), slice.data,
                           slice.data + slice.size);
  }
  settings_.step = step;
  LOCKSTEP_RETURN_IF_ERROR(ApplyDense(settings_, gradient, state));
  return true;
}

absl::Status TraceUpdater::UpdateSparse(int part, int64_t step,
                                        const server::SparseGradient& mean) {
  settings_.step = step;
  return ApplySparse(settings_, mean.indices, {mean.values_shape, mean.values},
                     /*decayed=*/true, StateOf(part));
}

absl::Status TraceUpdater::BeginSparse(int part) {
  return Decay(settings_, StateOf(part));
}

absl::Status TraceUpdater::Commit(int64_t) {
  settings_.powers = server::NextAdamPowers(settings_.config, settings_.powers);
  if (!average_decay_.has_value()) return absl::OkStatus();
  const float factor = server::AverageFactor(*average_decay_, std::nullopt);
  for (Variable& variable : variables_) {
    LOCKSTEP_RETURN_IF_ERROR(server::UpdateAverage(
        settings_.dtype, factor, variable.state.value.values,
        absl::MakeSpan(variable.average)));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::golden
